// SPDX-License-Identifier: BSL-1.0
// How a task travels, made of its callable, its arguments and its rights.
#pragma once

#include <weft/cluster/detail/code_address.hpp>
#include <weft/cluster/detail/read_value.hpp>
#include <weft/cluster/detail/repeatable.hpp>
#include <weft/cluster/detail/travel.hpp>
#include <weft/flow/fork.hpp>
#include <weft/flow/loop.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

namespace weft::inline WEFT_ABI {
namespace remote {

/// Callables that can be sent: functions, function objects without state, and those that can be archived.
template <class F>
inline constexpr bool is_function = std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>;
template <class F>
inline constexpr bool is_stateless = std::is_empty_v<F> && std::is_trivially_copyable_v<F>;
template <class F>
inline constexpr bool callable_travels = is_function<F> || is_stateless<F> || travels<F>;
/// A loop, or a part of one: what it calls.
template <class F>
inline constexpr bool is_loop = false;
template <class I, class F, bool Divides, class... Parameters>
inline constexpr bool is_loop<flow::loop<I, F, Divides, Parameters...>> = true;
template <class I, class F, bool Divides, class... Parameters>
inline constexpr bool callable_travels<flow::loop<I, F, Divides, Parameters...>> = callable_travels<F>;

template <class F>
void pack_callable(const F& f, writer& w) {
  if constexpr (is_function<F>) {
    const code_address a = loaded_code::at_start().find(reinterpret_cast<const void*>(f));
    w(a.module, a.offset);
  } else if constexpr (is_loop<F>) {
    w(f.first, f.last, static_cast<std::uint64_t>(f.options.grain));
    pack_callable(f.f, w);
  } else if constexpr (!is_stateless<F>) {
    w(f);
  }
}
template <class F>
F unpack_callable(reader& r) {
  if constexpr (is_function<F>) {
    code_address a;
    r(a.module, a.offset);
    return reinterpret_cast<F>(const_cast<void*>(loaded_code::at_start().at(a)));
  } else if constexpr (is_loop<F>) {  // the task of a loop has its name
    decltype(F::first) first{}, last{};
    std::uint64_t grain = 0;
    r(first, last, grain);
    if (!(first < last)) reader::refuse();
    return {{.grain = static_cast<std::size_t>(grain)}, first, last, unpack_callable<decltype(F::f)>(r)};
  } else if constexpr (is_stateless<F>) {
    union stateless {
      stateless() noexcept {}
      char nothing = 0;
      F f;
    };
    return stateless().f;
  } else {
    return r.get<F>();
  }
}

/// What a guest keeps for one argument, beside what its closure keeps: nothing for a plain value.
template <class Adaptor>
struct guest_argument {
  using kept = typename Adaptor::kept;
  static constexpr bool travels = value_travels<kept>;
  std::optional<kept> value;

  static void pack(const kept& k, writer& w) { w(k); }
  void unpack(reader& r) { value.emplace(r.get<kept>()); }
  kept take() { return *std::move(value); }
  void pack_result(writer&, const kept*) const {}
  static void pack_written(const kept&, writer&) {}
  static void take_back(kept&, reader&, bool) {}
};
/// One that the task only reads.
template <class Adaptor>
  requires(Adaptor::access && Adaptor::wanted == flow::right_kind::read)
struct guest_argument<Adaptor> {
  using kept = typename Adaptor::kept;
  using value_type = std::remove_cv_t<typename Adaptor::value>;
  static constexpr bool travels = value_travels<value_type>;
  read_value<value_type> value;

  static void pack(const kept& k, writer& w) { pack_read<value_type>(*k, w); }
  void unpack(reader& r) { value.unpack(r); }
  kept take() noexcept { return value.get(); }
  void pack_result(writer&, const kept*) const {}
  static void pack_written(const kept&, writer&) {}
  static void take_back(const kept&, reader&, bool) {}
};
/// An object of its own, for one that the task writes.
template <class Adaptor>
  requires(Adaptor::access && Adaptor::wanted != flow::right_kind::read)
struct guest_argument<Adaptor> {
  using kept = typename Adaptor::kept;
  using value_type = std::remove_cv_t<typename Adaptor::value>;
  static constexpr bool travels = value_travels<value_type>;
  // What is not renamed is what its owner has made: a task that writes it may use its size.
  static constexpr bool in = Adaptor::wanted != flow::right_kind::write || !Adaptor::renames;
  value_type value;

  static void pack(const kept& k, writer& w) {
    if constexpr (in) w(*k);
  }
  void unpack([[maybe_unused]] reader& r) {
    if constexpr (in) value = r.get<value_type>();
  }
  kept take() noexcept { return std::addressof(value); }
  void pack_result(writer& w, const kept*) const { w(value); }
  static void pack_written(const kept& k, writer& w) { w(*k); }
  static void take_back(const kept& k, reader& r, bool) {
    r(*k);  // in place: others may hold addresses of its elements
  }
};
/// A contribution, kept apart until it is at home again.
template <class T, class Op>
struct guest_contribution {
  using kept = flow::contribution<T, Op>;
  static constexpr bool travels = value_travels<T> && callable_travels<Op>;
  std::optional<Op> op;
  alignas(T) std::byte nowhere[sizeof(T)];  ///< only its address is used

  static void pack(const kept& k, writer& w) { pack_callable(k.op, w); }
  void unpack(reader& r) { op.emplace(unpack_callable<Op>(r)); }
  kept take() { return {reinterpret_cast<T*>(nowhere), *std::move(op), nullptr, true}; }
  void pack_result(writer& w, const kept* k) const { pack_written(*k, w); }
  static void pack_written(const kept& k, writer& w) {
    w(k.part.has_value());
    if (k.part) w(*k.part);
  }
  static void take_back(kept& k, reader& r, bool apart) {
    k.privatized = apart;
    if (r.get<bool>()) k.add(r.get<T>());
  }
};
template <class Kept>
struct contribution_types;
template <class T, class Op>
struct contribution_types<flow::contribution<T, Op>> {
  using guest = guest_contribution<T, Op>;
};
template <class Adaptor>
  requires(!Adaptor::access && Adaptor::parts != 0)
struct guest_argument<Adaptor> : contribution_types<typename Adaptor::kept>::guest {};

/// The result of a guest, with the mark of its presence.
template <class R>
class guest_result {
 public:
  guest_result() {
    if constexpr (flow::plain<R>)
      std::construct_at(&box_.state)
          ->store(flow::presence::absent, base::memory_order_relaxed);  // not shared yet
    else
      ::new (&box_.note) sched::cleanup{nullptr, &flow::tracked<R>::destroy, flow::presence::absent};
  }
  guest_result(const guest_result&) = delete;
  guest_result& operator=(const guest_result&) = delete;
  ~guest_result() {
    if (flow::presence_of(place()).load(base::memory_order_relaxed) == flow::presence::present)
      std::destroy_at(place());
  }
  R* place() noexcept { return std::launder(reinterpret_cast<R*>(box_.value)); }
  flow::result<R> target() noexcept { return {reinterpret_cast<R*>(box_.value)}; }
  void pack(writer& w) { w(*place()); }

 private:
  union {
    std::conditional_t<flow::plain<R>, flow::marked<R>, flow::tracked<R>> box_;
  };
};
template <>
class guest_result<void> {
 public:
  static flow::result<void> target() noexcept { return {}; }
  static void pack(writer&) noexcept {}
};

}  // namespace remote

namespace flow {

template <class F, class R, bool WithOptions, std::size_t... I, class... Adaptors>
struct travel_key<task<F, R, WithOptions, std::index_sequence<I...>, Adaptors...>> {
  using task_type = task<F, R, WithOptions, std::index_sequence<I...>, Adaptors...>;
  static constexpr bool contributes = task_type::part_count != 0;
  static constexpr bool result_travels = [] {
    if constexpr (std::is_void_v<R>)
      return true;
    else
      return remote::value_travels<R>;
  }();
  static constexpr bool possible =
      remote::callable_travels<F> && result_travels && (remote::guest_argument<Adaptors>::travels && ...);

  /// Made of what was packed.
  struct visiting final : remote::guest {
    explicit visiting(remote::reader& r) {
      if constexpr (WithOptions) {
        name = r.get<std::string>();
        options.name = name.c_str();
        r(options.priority);
      }
      F f = remote::unpack_callable<F>(r);
      if constexpr (remote::is_loop<F>) {
        f.options.name = options.name;
        f.options.priority = options.priority;
      }
      (std::get<I>(arguments).unpack(r), ...);
      root = ::new (static_cast<void*>(room))
          task_type(std::move(f), result.target(), &options, std::get<I>(arguments).take()...);
      root->privatized = contributes;
    }
    ~visiting() override {
      if constexpr (contributes)
        if (root->privatized) self().destroy_payload();  // which its body has left in place
    }
    void pack_results(remote::writer& w, bool well) override {
      (std::get<I>(arguments).pack_result(w, kept_for<I>()), ...);
      if (well) result.pack(w);
    }
    task_type& self() noexcept { return static_cast<task_type&>(*root); }
    template <std::size_t N>
    auto kept_for() noexcept {
      using kept = typename task_type::template nth_binding<N>::kept;
      if constexpr (task_type::template nth_binding<N>::parts != 0)
        return static_cast<const kept*>(&std::get<N>(self().values_));
      else
        return static_cast<const kept*>(nullptr);
    }

    std::string name;
    sched::task_options options;
    std::tuple<remote::guest_argument<Adaptors>...> arguments;
    [[no_unique_address]] remote::guest_result<R> result;
    alignas(task_type) std::byte room[sizeof(task_type)];
  };

  static bool may_go(const sched::closure& c) noexcept {
    const sched::descriptor& what = *c.what;
    if (c.local || what.options(c).event || c.may_wait_for_earlier) return false;
    for (std::size_t i = 0; i < what.objects; ++i)  // two rights on one object would become two objects
      for (std::size_t j = i + 1; j < what.objects; ++j)
        if (c.object(i) == c.object(j) && sched::conflict(what.modes[i], what.modes[j])) return false;
    return true;
  }
  template <std::size_t N>
  static void pack_argument(task_type& self, remote::writer& w) {
    remote::guest_argument<typename task_type::template nth_binding<N>>::pack(self.template kept<N>(), w);
  }
  static void pack(const sched::closure& c, remote::writer& w) {
    auto& self = const_cast<task_type&>(static_cast<const task_type&>(c));
    if constexpr (WithOptions) w(std::string(self.options_.name), self.options_.priority);
    remote::pack_callable(self.f_, w);
    (pack_argument<I>(self, w), ...);
  }
  static std::unique_ptr<remote::guest> unpack(remote::reader& r) { return std::make_unique<visiting>(r); }
  template <std::size_t N>
  static void take_argument(task_type& self, remote::reader& r) {
    remote::guest_argument<typename task_type::template nth_binding<N>>::take_back(self.template kept<N>(), r,
                                                                                   self.privatized);
  }
  static void take_back(sched::closure& c, remote::reader& r, bool well) {
    auto& self = static_cast<task_type&>(c);
    (take_argument<I>(self, r), ...);
    if (!well) self.target().lose();
    if constexpr (!std::is_void_v<R>)
      if (well) self.target().take([&r] { return r.get<R>(); });
    end_arguments(self);
  }
  static void lose(sched::closure& c) noexcept {
    auto& self = static_cast<task_type&>(c);
    self.target().lose();
    end_arguments(self);
  }
  /// Contributions made apart stay until they are folded.
  static void end_arguments(task_type& self) noexcept {
    if (!contributes || !self.privatized) self.destroy_payload();
  }

  template <std::size_t N>
  static void pack_written_argument(task_type& self, remote::writer& w) {
    using binding = typename task_type::template nth_binding<N>;
    if constexpr (binding::access || binding::parts != 0)  // other arguments are destroyed
      remote::guest_argument<binding>::pack_written(self.template kept<N>(), w);
  }
  static void pack_written(sched::closure& c, remote::writer& w) {
    auto& self = static_cast<task_type&>(c);
    (pack_written_argument<I>(self, w), ...);
    if constexpr (!std::is_void_v<R>) w(*self.target().place);
  }
  static void fold(sched::closure& c) {
    struct at_end {
      task_type& self;
      ~at_end() {
        self.privatized = false;
        self.destroy_payload();
      }
    } const ended{static_cast<task_type&>(c)};
    for (std::uint32_t part = 0; part < task_type::part_count; ++part) task_type::fold_(c, part);
  }
  static constexpr auto fold_if_any() noexcept {
    void (*how)(sched::closure&) = nullptr;
    if constexpr (contributes) how = &fold;
    return how;
  }

  static constexpr bool repeats = std::is_void_v<R> && std::copy_constructible<F> && !divides<F> &&
                                  (remote::argument_repeats<Adaptors> && ...);
  static std::unique_ptr<remote::repeatable> repeat(const sched::closure& c) {
    auto& self = const_cast<task_type&>(static_cast<const task_type&>(c));
    return std::make_unique<remote::repeated<F, Adaptors...>>(self.f_, self.template kept<I>()...);
  }
  /// Null where it does not repeat.
  static constexpr auto repeat_if_possible() noexcept {
    std::unique_ptr<remote::repeatable> (*how)(const sched::closure&) = nullptr;
    if constexpr (repeats) how = &repeat;
    return how;
  }
  static constexpr sched::travel all{
      &may_go, &pack, &unpack, &take_back, &lose, repeat_if_possible(), &pack_written, fold_if_any()};
  /// What is known of tasks that do not travel: at most how they are repeated where they are.
  static constexpr sched::travel stays{[](const sched::closure&) noexcept { return false; },
                                       nullptr,
                                       nullptr,
                                       nullptr,
                                       nullptr,
                                       repeat_if_possible(),
                                       nullptr,
                                       nullptr};
};

template <class Task>
const sched::travel* tell_travel() noexcept {
  if constexpr (travel_key<Task>::possible)
    return &travel_key<Task>::all;
  else
    return &travel_key<Task>::stays;
}

/// Sets travel_of before main().
template <class Task>
struct travel_announcement {
  static const bool made;
};
template <class Task>
const bool travel_announcement<Task>::made = (travel_of<Task> = &tell_travel<Task>, true);
template <class Task>
void announce_travel() noexcept {
  static_cast<void>(&travel_announcement<Task>::made);
}

}  // namespace flow
}  // namespace weft::inline WEFT_ABI
