// SPDX-License-Identifier: BSL-1.0
// The closure of a callable with its arguments: layout, static descriptor, and how the body is called.
#pragma once

#include <weft/base/call.hpp>
#include <weft/flow/argument_adaptor.hpp>
#include <weft/observe/traced_body.hpp>
#include <weft/task/closure.hpp>

#include <array>
#include <tuple>

namespace weft::inline WEFT_ABI::flow {

/// Where the value that a task returns goes: nowhere, or into a shared object.
template <class R>
struct result {
  static constexpr std::size_t objects = 1;
  R* place = nullptr;

  template <class Call>
  WEFT_ALWAYS_INLINE void take(Call&& call) const {
    ::new (static_cast<void*>(place)) R(call());
    mark_result(place, presence::present);
  }
  void lose() const noexcept { mark_result(place, presence::lost); }
};
template <>
struct result<void> {
  static constexpr std::size_t objects = 0;

  template <class Call>
  WEFT_ALWAYS_INLINE void take(Call&& call) const {
    call();
  }
  void lose() const noexcept {}
};

template <class R>
WEFT_ALWAYS_INLINE result<R> result_at([[maybe_unused]] const place<R>& p) noexcept {
  if constexpr (std::is_void_v<R>)
    return {};
  else
    return {p.value};
}

/// What a body gets for an argument with this binding.
template <class Adaptor>
using passed = decltype(Adaptor::pass(std::declval<typename Adaptor::kept&>()));

/// Calls `f` with what the bindings pass for the kept arguments.
template <class... Adaptors, class F, class... Kept>
WEFT_ALWAYS_INLINE decltype(auto) call_with(F&& f, Kept&&... kept) {
  return base::call(std::forward<F>(f), Adaptors::pass(kept)...);
}

/// What calling a task of these bindings yields.
template <class F, class... Adaptors>
using called = std::invoke_result_t<F, passed<Adaptors>...>;

/// Whether what a closure keeps for an argument is made by the binding.
template <class Adaptor>
concept defers_specially = requires(typename Adaptor::kept& k, sched::closure& c) { Adaptor::defer(k, c); };

/// Whether a closure has to keep more of an argument, once it is where it stays.
template <class Adaptor>
concept sets_apart =
    requires(typename Adaptor::kept& k, sched::arena& memory) { Adaptor::set_apart(k, memory); };

/// Whether a closure that keeps an argument reads an object on top, which the binding names.
template <class Adaptor>
concept waits_for_object = requires(const typename Adaptor::kept& k) { Adaptor::object(k); };

/// Whether the callable is a part of a loop that can be divided further.
template <class F>
inline constexpr bool divides = false;
template <class F>
  requires requires { F::divides; }
inline constexpr bool divides<F> = F::divides;

/// Stands in the payload for an argument whose address is among the objects.
template <std::size_t>
struct among_objects {};

/// How tasks of a type go to other processes. Set before main() by the room cluster, if some file of the
/// program includes that. So a task means the same in every file, whatever it includes.
template <class Task>
inline constinit sched::travel_function travel_of = nullptr;

/// Never called. It is defined in the room cluster, and whoever names it there has `travel_of` set.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class Task>
void announce_travel() noexcept;
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// Opens a closure for that.
template <class Task>
struct travel_key;

/// Whether a task with such an argument may go to another process, as far as rights are concerned.
template <class Adaptor>
inline constexpr bool right_travels =
    !Adaptor::weak && !waits_for_object<Adaptor> && !defers_specially<Adaptor> && !sets_apart<Adaptor> &&
    (Adaptor::access || Adaptor::plain || Adaptor::parts != 0);

/// The same of a task with all of these.
template <class... Adaptors>
inline constexpr bool rights_travel = (right_travels<Adaptors> && ...);

/// A closure with its payload. The addresses of the objects come first, as sched::closure::objects() expects:
/// those of the accesses in order of the parameters, then the result's.
template <class F, class R, bool WithOptions, class Indices, class... Adaptors>
class task;

template <class F, class R, bool WithOptions, std::size_t... I, class... Adaptors>
class task<F, R, WithOptions, std::index_sequence<I...>, Adaptors...> final : public sched::closure {
  friend struct travel_key<task>;
  template <class B>
  static constexpr bool has_object = B::access || waits_for_object<B>;
  static constexpr std::size_t accesses = (std::size_t{has_object<Adaptors>} + ... + 0);
  static constexpr std::size_t object_count = accesses + result<R>::objects;
  static constexpr bool has_more = (Adaptors::more || ... || false);
  static constexpr bool has_lists = (sets_apart<Adaptors> || ...);
  static constexpr std::uint32_t part_count = (Adaptors::parts + ... + 0u);

  template <std::size_t N>
  using nth_binding = std::tuple_element_t<N, std::tuple<Adaptors...>>;
  using payload =
      std::tuple<std::conditional_t<Adaptors::access, among_objects<I>, typename Adaptors::kept>...>;

 public:
  static constexpr bool nothrow = std::is_nothrow_move_constructible_v<F> &&
                                  (std::is_nothrow_move_constructible_v<typename Adaptors::kept> && ...) &&
                                  !(defers_specially<Adaptors> || ...) && !has_lists;

  /// *Throws*: what moving the callable and the arguments throws.
  task(F&& f, result<R> r, const sched::task_options* options,
       typename Adaptors::kept&&... kept) noexcept(nothrow)
      : closure(what_), f_(std::move(f)), values_(in_payload<I>(kept)...) {
    if constexpr (travels) static_cast<void>(&announce_travel<task>);
    (note_object<I>(kept), ...);
    if constexpr (result<R>::objects != 0) objects_[accesses] = r.place;
    if constexpr (WithOptions) {
      options_ = *options;
      local = options->local;
    }
  }
  ~task() {}  // run and drop destroy the payload

  /// It is to be traced, or shown to a keeper. *Requires*: it is not linked yet.
  void trace(std::uint64_t stamp) noexcept {
    what = &traced_;
    set_stamp(stamp);
  }

  /// The closure is about to be deferred. *Throws*: std::bad_alloc; then it has no payload any more.
  void set_lists_apart([[maybe_unused]] sched::arena& memory) {
    if constexpr (has_lists) {
      try {
        (set_list_apart<I>(memory), ...);
      } catch (...) {
        destroy_payload();
        throw;
      }
    }
  }

 private:
  /// How many of the first N arguments are accesses: the place of an access among the objects.
  static constexpr std::size_t accesses_before(std::size_t n) noexcept {
    constexpr bool is_access[] = {has_object<Adaptors>..., false};
    std::size_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += is_access[i];
    return sum;
  }
  template <std::size_t N, class K>
  decltype(auto) in_payload(K& kept) noexcept(!defers_specially<nth_binding<N>>) {
    if constexpr (nth_binding<N>::access)
      return among_objects<N>{};
    else if constexpr (defers_specially<nth_binding<N>>)
      return nth_binding<N>::defer(kept, *this);
    else
      return std::move(kept);
  }
  template <std::size_t N>
  void set_list_apart(sched::arena& memory) {
    if constexpr (sets_apart<nth_binding<N>>) nth_binding<N>::set_apart(std::get<N>(values_), memory);
  }
  template <std::size_t N, class K>
  void note_object(const K& kept) noexcept {
    if constexpr (nth_binding<N>::access)
      objects_[accesses_before(N)] = const_cast<void*>(static_cast<const volatile void*>(kept));
    else if constexpr (has_object<nth_binding<N>>)
      objects_[accesses_before(N)] = const_cast<void*>(nth_binding<N>::object(std::get<N>(values_)));
  }
  template <std::size_t N>
  decltype(auto) kept() noexcept {
    if constexpr (nth_binding<N>::access)
      return static_cast<typename nth_binding<N>::kept>(objects_[accesses_before(N)]);
    else
      return (std::get<N>(values_));
  }

  static void run_(sched::closure& c) {
    auto& self = static_cast<task&>(c);
    struct destroyer {
      task& self;
      ~destroyer() {
        if (part_count == 0 || self.privatized == 0) self.destroy_payload();
      }
    } const at_end{self};
    if constexpr (part_count != 0) (set_apart<I>(self), ...);
    const auto call = [&self]() -> decltype(auto) {
      return call_with<Adaptors...>(std::move(self.f_), self.template kept<I>()...);
    };
    if constexpr (std::is_void_v<R>) {
      call();
    } else {
      try {
        self.target().take(call);
      } catch (...) {
        self.target().lose();
        throw;
      }
    }
    (tell_end<I>(self), ...);
  }
  template <std::size_t N>
  static void tell_end(task& self) noexcept {
    if constexpr (requires { nth_binding<N>::end_well(std::get<N>(self.values_)); })
      nth_binding<N>::end_well(std::get<N>(self.values_));
  }
  static void drop_(sched::closure& c) noexcept {
    auto& self = static_cast<task&>(c);
    self.target().lose();
    self.destroy_payload();
    self.privatized = false;  // nothing is kept
  }
  result<R> target() const noexcept {
    if constexpr (std::is_void_v<R>)
      return {};
    else
      return {static_cast<R*>(objects_[accesses])};
  }
  void destroy_payload() noexcept {
    std::destroy_at(&values_);
    std::destroy_at(&f_);
  }
  /// How many contributions the first N arguments are.
  static constexpr std::uint32_t parts_before(std::size_t n) noexcept {
    constexpr std::uint32_t parts[] = {Adaptors::parts..., 0};
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += parts[i];
    return sum;
  }
  template <std::size_t N>
  static void set_apart(task& self) noexcept {
    if constexpr (nth_binding<N>::parts != 0) std::get<N>(self.values_).privatized = self.privatized;
  }
  template <std::size_t N>
  static void tell_more(task& self, sched::access_visitor& v) {
    if constexpr (nth_binding<N>::more)
      nth_binding<N>::tell_all(std::get<N>(self.values_), parts_before(N),
                               [&v](const sched::access& a) { v.see(v, a); });
  }
  static void more_(sched::closure& c, sched::access_visitor& v) {
    (tell_more<I>(static_cast<task&>(c), v), ...);
  }
  template <std::size_t N>
  static void fold_part(task& self, std::uint32_t part) {
    if constexpr (nth_binding<N>::parts != 0)
      if (parts_before(N) == part) std::get<N>(self.values_).fold();
  }
  static void fold_([[maybe_unused]] sched::closure& c, [[maybe_unused]] std::uint32_t part) {
    if constexpr (part_count != 0) {
      if (part == sched::all_parts)
        static_cast<task&>(c).destroy_payload();
      else
        (fold_part<I>(static_cast<task&>(c), part), ...);
    }
  }
  static const sched::task_options& options_of_([[maybe_unused]] const sched::closure& c) noexcept {
    if constexpr (WithOptions)
      return static_cast<const task&>(c).options_;
    else
      return sched::default_options;
  }

  static constexpr std::array<access_mode, object_count + 1> modes_ = [] {
    std::array<access_mode, object_count + 1> all{};
    ((has_object<Adaptors> ? void(all[accesses_before(I)] = Adaptors::mode) : void()), ...);
    if constexpr (result<R>::objects != 0) all[accesses] = access_mode::write;
    return all;
  }();
  template <class B>
  static constexpr bool renames_for() noexcept {
    if constexpr (B::access)
      return B::renames;
    else
      return false;
  }
  static constexpr bool renames = (renames_for<Adaptors>() || ...);
  template <std::size_t N>
  static constexpr void note_kind(auto& kinds) noexcept {
    if constexpr (renames_for<nth_binding<N>>()) kinds[accesses_before(N)] = nth_binding<N>::kind();
  }
  static constexpr auto kinds_ = [] {
    std::array<const sched::version_kind*, renames ? object_count : 1> kinds{};
    (note_kind<I>(kinds), ...);
    return kinds;
  }();
  static constexpr bool travels = rights_travel<Adaptors...>;
  static constexpr sched::descriptor what_{&run_,
                                           &drop_,
                                           modes_.data(),
                                           object_count,
                                           &options_of_,
                                           (Adaptors::plain && ...),
                                           has_more ? &more_ : nullptr,
                                           part_count != 0 ? &fold_ : nullptr,
                                           renames ? kinds_.data() : nullptr,
                                           divides<F>,
                                           false,
                                           false,
                                           travels ? &travel_of<task> : nullptr};
  static constexpr sched::descriptor traced_ = observe::traced(what_);

  void* objects_[object_count != 0 ? object_count : 1];
  union {
    F f_;
  };
  union {
    payload values_;
  };
  [[no_unique_address]] std::conditional_t<WithOptions, sched::task_options, among_objects<0>> options_;
};

}  // namespace weft::inline WEFT_ABI::flow
