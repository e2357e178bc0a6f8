// SPDX-License-Identifier: BSL-1.0
// A scratch object for each worker, made when the worker first asks for it.
#pragma once

#include <weft/flow/no_suspend.hpp>
#include <weft/sched/worker_number.hpp>
#include <weft/task/current.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <source_location>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI {

namespace detail {

/// A number of the calling thread that no other thread of the process ever has, for threads that are no
/// workers: those do not move to another thread in the middle of a body.
WEFT_PER_PROCESS inline base::atomic<std::uint64_t> threads_numbered{0};
WEFT_NOINLINE inline std::uint64_t thread_number() noexcept {
  static thread_local const std::uint64_t mine =
      1 + threads_numbered.fetch_add(1, base::memory_order_relaxed);
  return mine;
}

}  // namespace detail

/// An object of type T for each worker that asks for one, and for each other thread that does. Bodies that
/// run on one worker one after the other find the same object; bodies that run at the same time find
/// different ones. For memory that is expensive to make, and for sums whose order does not matter; where it
/// does, use weft::reduce. Objects do not share cache lines. Workers of different runtimes have different
/// objects; that of a worker that has ended passes to the next worker that the process starts.
///
/// A body that waits (sync, a nested run, a lock, and a fork that runs tasks first) may go on on another
/// worker, and others may use the object meanwhile. So a reference from local() is valid until the body
/// waits, or forks a task that uses the object too; checked builds verify this for `use`.
/// *Thread safety*: local and use from any thread; all else only while nobody else uses it.
/// *Example*: `weft::worker_local<std::vector<double>> scratch([] { return std::vector<double>(1000); });`
template <class T>
class worker_local {
  struct element;

 public:
  /// The type of the objects.
  using value_type = T;

  /// Objects are made by T().
  worker_local()
    requires std::default_initializable<T>
      : make_([] { return T(); }) {}
  /// Objects are what `make()` returns, which several workers may call at the same time.
  template <std::invocable F>
    requires(!std::same_as<std::remove_cvref_t<F>, worker_local>) && std::same_as<std::invoke_result_t<F&>, T>
  explicit worker_local(F make)
      : make_([shared = std::make_shared<F>(std::move(make))] { return std::invoke(*shared); }) {}
  worker_local(const worker_local&) = delete;
  worker_local& operator=(const worker_local&) = delete;
  ~worker_local() = default;

  /// *Returns*: the object of the calling worker, or thread; made now if this is its first call.
  /// *Throws*: std::bad_alloc, what making it throws; the next call tries again.
  /// *Suspends*: no, unless making it does. *Cost*: some loads; threads that are no workers take a lock.
  T& local() { return element_().value; }

  /// Calls `f` with the object. In checked builds it stops the program with a sentence if `f` waits, or if a
  /// body around this one, on the same worker, uses the object: it has forked inside its `f`.
  /// *Returns*, *Throws*: what `f` does; as local.
  template <std::invocable<T&> F>
  std::invoke_result_t<F, T&> use(
      F&& f, [[maybe_unused]] std::source_location where = std::source_location::current()) {
    element& mine = element_();
    [[maybe_unused]] const ordered_by_the_worker_ after_the_use_before(mine);
#if WEFT_CHECKED
    const this_task::no_suspend until_the_end("a worker_local", where);
    const exclusive_use_ alone(mine);
#endif
    return std::invoke(std::forward<F>(f), mine.value);
  }

  /// *Returns*: op(... op(op(a, b), c) ...) for all objects, in the order in which they were made; what
  /// T() or `make()` gives if there are none. *Requires*: `op` is associative and commutative, since which
  /// body has used which object is chance.
  template <class Op>
    requires std::copy_constructible<T> && std::convertible_to<std::invoke_result_t<Op&, T, const T&>, T>
  T combine(Op op) const {
    if (all_.empty()) return make_();
    auto next = begin();
    T sum(*next);
    for (++next; next != end(); ++next) sum = std::invoke(op, std::move(sum), *next);
    return sum;
  }

  /// Goes through the objects in the order in which they were made.
  template <class Value>
  class iterator_over {
   public:
    /// The type of the objects.
    using value_type = T;
    /// For iterators.
    using difference_type = std::ptrdiff_t;
    /// At no object.
    iterator_over() = default;
    /// The object.
    Value& operator*() const noexcept { return (*at_)->value; }
    /// The same.
    Value* operator->() const noexcept { return &(*at_)->value; }
    /// The next object.
    iterator_over& operator++() noexcept {
      ++at_;
      return *this;
    }
    /// The next object, after this one.
    iterator_over operator++(int) noexcept { return iterator_over(at_++); }
    /// Whether both are at the same object.
    bool operator==(const iterator_over&) const = default;

   private:
    friend worker_local;
    explicit iterator_over(const std::unique_ptr<element>* at) noexcept : at_(at) {}
    const std::unique_ptr<element>* at_ = nullptr;
  };
  /// Goes through the objects, in the order in which they were made.
  using iterator = iterator_over<T>;
  /// The same, for reading.
  using const_iterator = iterator_over<const T>;

  /// The first object.
  iterator begin() noexcept { return iterator(all_.data()); }
  /// Behind the last one.
  iterator end() noexcept { return iterator(all_.data() + all_.size()); }
  /// The first object.
  const_iterator begin() const noexcept { return const_iterator(all_.data()); }
  /// Behind the last one.
  const_iterator end() const noexcept { return const_iterator(all_.data() + all_.size()); }
  /// How many objects there are.
  std::size_t size() const noexcept { return all_.size(); }
  /// Whether there are none.
  bool empty() const noexcept { return all_.empty(); }

  /// Destroys all objects; who asks again gets a new one.
  void clear() noexcept {
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; rows_[row] != nullptr && i < width_(row); ++i)
        rows_[row][i].store(nullptr, base::memory_order_relaxed);  // nobody else uses it
    of_threads_.clear();
    all_.clear();
  }

 private:
  /// Where the number of a worker stands in the table: rows hold 1, 1, 2, 4, 8, ... numbers, and are made
  /// when they are needed.
  struct position {
    std::size_t row, column;
    explicit position(std::uint32_t n) noexcept
        : row(static_cast<std::size_t>(std::bit_width(n))), column(n - std::bit_floor(n)) {}
  };
  static constexpr std::size_t rows = std::bit_width(sched::worker_number::most) + 1;
  static constexpr std::size_t width_(std::size_t row) noexcept {
    return row < 2 ? 1 : std::size_t{1} << (row - 1);
  }
  using entry = base::atomic<element*>;

  struct alignas(alignof(T) > 64 ? alignof(T) : 64) element {
    explicit element(const std::function<T()>& make) : value(make()) {}
    T value;
#if WEFT_CHECKED
    bool in_use = false;
#endif
  };

  /// Where races are looked for: uses by one worker come one after the other.
  class ordered_by_the_worker_ {
   public:
    explicit ordered_by_the_worker_([[maybe_unused]] element& e) noexcept : e_(e) {
#if WEFT_RACES
      context::races::acquire(&e_);
#endif
    }
    ordered_by_the_worker_(const ordered_by_the_worker_&) = delete;
    ordered_by_the_worker_& operator=(const ordered_by_the_worker_&) = delete;
    ~ordered_by_the_worker_() {
#if WEFT_RACES
      context::races::release(&e_);
#endif
    }

   private:
    [[maybe_unused]] element& e_;
  };

#if WEFT_CHECKED
  class exclusive_use_ {
   public:
    explicit exclusive_use_(element& e) noexcept : e_(e) {
      if (e.in_use)
        base::fail(
            "a worker_local object is used by two bodies at once: one of them forks or waits inside use()");
      e.in_use = true;
    }
    exclusive_use_(const exclusive_use_&) = delete;
    exclusive_use_& operator=(const exclusive_use_&) = delete;
    ~exclusive_use_() { e_.in_use = false; }

   private:
    element& e_;
  };
#endif

  element& element_() {
    const std::uint32_t number = sched::current().worker_number;
    if (number == 0) return of_thread_(detail::thread_number());
    const position p(number);
    const entry* const row = table_[p.row].load(base::memory_order_acquire);  // pairs with add_
    element* const e = row != nullptr ? row[p.column].load(base::memory_order_acquire) : nullptr;  // the same
    return e != nullptr ? *e : add_();
  }
  WEFT_NOINLINE element& add_() {
    auto fresh = std::make_unique<element>(make_);
    // Making it may have taken the body to another worker, or let others run on this one.
    const position p(sched::current().worker_number);
    const std::lock_guard hold(mutex_);
    if (rows_[p.row] == nullptr) {
      rows_[p.row] = std::make_unique<entry[]>(width_(p.row));
      table_[p.row].store(rows_[p.row].get(), base::memory_order_release);  // pairs with element_
    }
    entry& place = rows_[p.row][p.column];
    // Relaxed: changed under the lock only.
    if (element* const e = place.load(base::memory_order_relaxed)) return *e;
    all_.push_back(std::move(fresh));
    place.store(all_.back().get(), base::memory_order_release);  // pairs with element_
    return *all_.back();
  }
  WEFT_NOINLINE element& of_thread_(std::uint64_t thread) {
    {
      const std::lock_guard hold(mutex_);
      for (const auto& [known, e] : of_threads_)
        if (known == thread) return *e;
    }
    auto fresh = std::make_unique<element>(make_);
    const std::lock_guard hold(mutex_);
    of_threads_.reserve(of_threads_.size() + 1);
    all_.push_back(std::move(fresh));
    of_threads_.emplace_back(thread, all_.back().get());
    return *all_.back();
  }

  const std::function<T()> make_;
  std::array<base::atomic<entry*>, rows> table_{};
  base::mutex mutex_;  ///< for all that follows
  std::array<std::unique_ptr<entry[]>, rows> rows_;
  std::vector<std::unique_ptr<element>> all_;
  std::vector<std::pair<std::uint64_t, element*>> of_threads_;
};

}  // namespace weft::inline WEFT_ABI
