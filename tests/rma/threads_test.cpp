// SPDX-License-Identifier: BSL-1.0
// The locks, and the buckets of hash tables, between threads of one process, which stand for processes: the
// same steps on memory that they share, so that the thread sanitizer sees whether a lock orders what it
// protects.
#include "support/catch.hpp"

#include <weft/rma/detail/acquire.hpp>
#include <weft/rma/detail/buckets.hpp>
#include <weft/rma/detail/d_mcs_lock.hpp>
#include <weft/rma/detail/gated_lock.hpp>
#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/key_batch.hpp>
#include <weft/rma/detail/mcs_wp_lock.hpp>
#include <weft/rma/detail/one_group_lock.hpp>
#include <weft/rma/detail/rma_rw_lock.hpp>
#include <weft/rma/detail/shared_words.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <span>
#include <thread>
#include <vector>

namespace {

using namespace weft::rma::detail;

/// What the locks of one target protect; no atomics.
struct pair_of_words {
  std::uint64_t first = 0, second = 0;
};

template <class Lock>
class group_of_threads {
 public:
  static constexpr int size = 4, rounds = 2000;

  explicit group_of_threads(int group)
      : memory_(static_cast<std::size_t>(size), std::vector<std::uint64_t>(Lock::words(size))) {
    std::vector<std::uint64_t*> first;
    for (auto& m : memory_) first.push_back(m.data());
    context_.processes = size;
    context_.group = group;
    context_.most_in_a_row = 3;
    std::vector<std::thread> threads;
    for (int self = 0; self < size; ++self)
      threads.emplace_back([this, first, self] { work_(shared_words(first, self)); });
    for (std::thread& t : threads) t.join();
    for (const pair_of_words& p : data_) {
      CHECK(p.first == p.second);
      sum_ += p.first;
    }
    CHECK(sum_ == writes_);
    CHECK(torn_ == 0);
    CHECK(reads_ > 0);
  }

 private:
  void work_(shared_words words) {
    std::mt19937 random(static_cast<unsigned>(words.self()) + 7);
    std::uint64_t writes = 0, reads = 0, torn = 0;
    for (++started_; started_ < size;) std::this_thread::yield();
    for (int i = 0; i < rounds; ++i) {
      const auto target = static_cast<int>(random() % 2);
      pair_of_words& p = data_[static_cast<std::size_t>(target)];
      const auto what = random() % 8;
      lock_context c = context_;
      if (what < 3) {
        typename Lock::exclusive steps(target, c);
        execute(steps, words);
        c.token = token_of(steps);
        write_(p), ++writes;
        leave_<typename Lock::exclusive_release>(target, c, words);
      } else if (what == 3) {
        typename Lock::try_exclusive steps(target, c);
        if (!try_execute(steps, words)) continue;
        c.token = token_of(steps);
        write_(p), ++writes;
        leave_<typename Lock::exclusive_release>(target, c, words);
      } else if constexpr (!requires { typename Lock::shared; }) {
        ++reads;  // it has no shared form
      } else if (what == 4) {
        typename Lock::try_shared steps(target, c);
        if (!try_execute(steps, words)) continue;
        torn += p.first != p.second, ++reads;
        leave_<typename Lock::shared_release>(target, c, words);
      } else if (what < 7) {
        typename Lock::shared steps(target, c);
        execute(steps, words);
        torn += p.first != p.second, ++reads;
        leave_<typename Lock::shared_release>(target, c, words);
      } else if constexpr (requires { typename Lock::shared_all; }) {
        typename Lock::shared_all steps;
        execute(steps, words);
        for (const pair_of_words& each : data_) torn += each.first != each.second;
        typename Lock::shared_all_release end;
        execute(end, words);
        ++reads;
      }
    }
    writes_ += writes, reads_ += reads, torn_ += torn;
  }
  static void write_(pair_of_words& p) {
    ++p.first;
    ++p.second;
  }
  template <class Steps>
  static void leave_(int target, const lock_context& c, shared_words& words) {
    Steps steps(target, c);
    execute(steps, words);
  }

  std::vector<std::vector<std::uint64_t>> memory_;
  lock_context context_;
  pair_of_words data_[2];
  std::atomic<int> started_{0};
  std::atomic<std::uint64_t> writes_{0}, reads_{0}, torn_{0};
  std::uint64_t sum_ = 0;
};

/// The memory of one process, for all threads. Without addresses, the words of a transfer come in any order,
/// and each of them a while after the one before.
class words_of_threads {
 public:
  struct common {
    std::vector<std::uint64_t> words;
    std::shared_mutex lock;
  };
  words_of_threads(common& all, bool has_address, unsigned seed)
      : all_(&all), has_address_(has_address), random_(seed) {}
  std::uint64_t* direct(weft::rma::process) const { return has_address_ ? all_->words.data() : nullptr; }
  void get(weft::rma::process p, std::size_t at, std::span<std::uint64_t> to) const { start_get(p, at, to); }
  void put(weft::rma::process, std::size_t at, std::uint64_t v) {
    word_(at).store(v, std::memory_order_release);
  }
  std::uint64_t compare_exchange(weft::rma::process, std::size_t at, std::uint64_t expected,
                                 std::uint64_t v) {
    word_(at).compare_exchange_strong(expected, v, std::memory_order_acq_rel, std::memory_order_acquire);
    return expected;
  }
  void start_get(weft::rma::process, std::size_t at, std::span<std::uint64_t> to) const {
    if (locked_) return static_cast<void>(std::copy_n(all_->words.data() + at, to.size(), to.data()));
    in_any_order_(to.size(), [&](std::size_t i) { to[i] = word_(at + i).load(std::memory_order_acquire); });
  }
  void start_put(weft::rma::process, std::size_t at, std::span<const std::uint64_t> from) {
    if (locked_) return static_cast<void>(std::copy_n(from.data(), from.size(), all_->words.data() + at));
    in_any_order_(from.size(),
                  [&](std::size_t i) { word_(at + i).store(from[i], std::memory_order_release); });
  }
  void start_accumulate(weft::rma::process p, std::size_t at, std::span<const std::uint64_t> with,
                        weft::rma::combine) {
    put(p, at, with[0]);
  }
  void finish(weft::rma::process) const {}
  void lock_exclusive(weft::rma::process, unsigned) { all_->lock.lock(), locked_ = true; }
  void unlock_exclusive(weft::rma::process, unsigned) { locked_ = false, all_->lock.unlock(); }
  void lock_shared(weft::rma::process, unsigned) { all_->lock.lock_shared(), locked_ = true; }
  void unlock_shared(weft::rma::process, unsigned) { locked_ = false, all_->lock.unlock_shared(); }

 private:
  std::atomic_ref<std::uint64_t> word_(std::size_t at) const {
    return std::atomic_ref<std::uint64_t>(all_->words[at]);
  }
  template <class F>
  void in_any_order_(std::size_t n, F f) const {
    const std::size_t first = random_() % n;
    for (std::size_t i = 0; i < n; ++i) {
      f((first + i) % n);
      if (random_() % 64 == 0) std::this_thread::yield();
    }
  }
  common* all_;
  bool has_address_, locked_ = false;
  mutable std::mt19937 random_;
};

/// Threads that change and read one bucket. *Returns*: how often a read has met a write.
std::uint64_t in_one_bucket(bool has_address, std::optional<weft::rma::lock_kind> lock) {
  using value = std::array<std::uint64_t, 40>;
  using table = buckets<std::uint64_t, value, words_of_threads>;
  constexpr int threads = 3;
  constexpr std::uint64_t rounds = 1000;
  words_of_threads::common all;
  std::atomic<int> started{0};
  std::atomic<std::uint64_t> retries{0}, torn{0}, reads{0};
  all.words.resize(4 * table::image::words);
  const auto work = [&](int self) {
    table t(4, lock, 1, [&](std::size_t words) {
      if (words != all.words.size()) std::abort();
      return words_of_threads(all, has_address, static_cast<unsigned>(self));
    });
    typename table::image now;
    for (++started; started < threads;) std::this_thread::yield();
    for (std::uint64_t i = 0; i < rounds;) {
      if (self == 0) {  // reads
        const table::guard hold(t, 0, 1, false);
        t.read(0, 1, nullptr, now);
        if (now.state() == 0) {  // nobody has written yet
          std::this_thread::yield();
          continue;
        }
        ++i;
        const value v = now.value();
        for (const std::uint64_t w : v) torn += w != v[0];
        torn += now.key() != 7, ++reads;
      } else {  // adds one
        const table::guard hold(t, 0, 1, true);
        t.read(0, 1, nullptr, now);
        const std::uint64_t state = now.state();
        value v{};
        if (state != 0) v = now.value();
        if (!t.claim(0, 1, state)) continue;
        for (std::uint64_t& w : v) ++w;
        now.set(7, v);
        now.of[0] = (state | bucket_state::live) + bucket_state::one;
        t.publish(0, 1, now);
        ++i;
      }
    }
    retries += t.retries();
  };
  std::vector<std::thread> running;
  for (int self = 0; self < threads; ++self) running.emplace_back(work, self);
  for (std::thread& t : running) t.join();
  CHECK(torn == 0);
  CHECK(reads > 0);
  typename table::image end;
  std::copy_n(all.words.data() + table::image::words, end.of.size(), end.of.data());
  CHECK(end.value()[39] == (threads - 1) * rounds);
  return retries;
}

/// Two pages. When the second one is touched for the first time, something happens before the access goes on.
class trap {
 public:
  trap() {
    memory_ = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  trap(const trap&) = delete;
  trap& operator=(const trap&) = delete;
  ~trap() {
    ::munmap(memory_, 2 * page_);
    self_ = nullptr;
  }
  /// The words from `before` words before the second page on.
  std::uint64_t* words(std::size_t before) const {
    return reinterpret_cast<std::uint64_t*>(memory_ + page_) - before;
  }
  /// Lets `f` happen while `operation` touches the second page. *Returns*: how often it has happened.
  int during(std::function<void()> f, const std::function<void()>& operation) {
    meanwhile_ = std::move(f);
    happened_ = 0;
    self_ = this;
    struct sigaction here{};
    here.sa_sigaction = [](int, siginfo_t* what, void*) { touched_(what->si_addr); };
    here.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigaction(SIGSEGV, &here, &before_);
    ::mprotect(memory_ + page_, page_, PROT_NONE);
    operation();
    ::mprotect(memory_ + page_, page_, PROT_READ | PROT_WRITE);
    ::sigaction(SIGSEGV, &before_, nullptr);
    return happened_;
  }

 private:
  static void touched_(const void* at) {
    const auto* const second = self_->memory_ + self_->page_;
    if (self_->happened_ != 0 || at < second || at >= second + self_->page_) {
      ::sigaction(SIGSEGV, &self_->before_, nullptr);  // another fault: it comes again
      return;
    }
    ::mprotect(self_->memory_ + self_->page_, self_->page_, PROT_READ | PROT_WRITE);
    ++self_->happened_;
    self_->meanwhile_();
  }
  static inline trap* self_ = nullptr;
  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::byte* memory_;
  std::function<void()> meanwhile_;
  int happened_ = 0;
  struct sigaction before_{};
};

/// The memory of one process at an address, or where something happens before a transfer is complete.
class words_at : public words_of_threads {
 public:
  words_at(common& all, std::uint64_t* at) : words_of_threads(all, at != nullptr, 1), at_(at) {}
  std::uint64_t* direct(weft::rma::process) const { return at_; }
  void start_get(weft::rma::process p, std::size_t at, std::span<std::uint64_t> to) const {
    if (until_refused != 0 && --until_refused == 0) throw std::bad_alloc();
    words_of_threads::start_get(p, at, to);
    under_way = true;
  }
  void finish(weft::rma::process) const {
    under_way = false;
    if (meanwhile) std::exchange(meanwhile, nullptr)();
  }
  std::uint64_t compare_exchange(weft::rma::process p, std::size_t i, std::uint64_t expected,
                                 std::uint64_t v) {
    if (at_ == nullptr) return words_of_threads::compare_exchange(p, i, expected, v);
    std::atomic_ref<std::uint64_t>(at_[i]).compare_exchange_strong(expected, v);
    return expected;
  }
  static inline std::function<void()> meanwhile;
  static inline int until_refused = 0;   ///< transfers, of which the last one finds no memory
  static inline bool under_way = false;  ///< transfers that write to memory of the caller

 private:
  std::uint64_t* at_;
};
using record = std::array<std::uint64_t, 4>;
using table_at = buckets<std::uint64_t, record, words_at>;
constexpr std::uint64_t any_key = 7;
table_at::image image_of(std::uint64_t value, std::uint64_t changes) {
  table_at::image i;
  record r;
  r.fill(value);
  i.set(any_key, r);
  i.of[0] = changes * bucket_state::one | bucket_state::live;
  i.of.back() = i.checksum();
  return i;
}

}  // namespace

TEST_CASE("what happens in the middle of a read or a write of a bucket") {
  trap pages;
  words_of_threads::common none;
  constexpr std::size_t words = table_at::image::words;
  // Each word of the value is once the first one of the second page.
  for (std::size_t before = 2; before + 1 < words; ++before) {
    std::uint64_t* const at = pages.words(before);
    table_at t(1, {}, 1, [&](std::size_t) { return words_at(none, at); });
    const table_at::image old = image_of(1, 1);
    std::copy_n(old.of.data(), words - 1, at);
    // A reader has seen a part of a value when the whole bucket changes.
    table_at::image seen;
    int happened = pages.during(
        [&] {
          const table_at::image now = image_of(2, 2);
          std::copy_n(now.of.data(), words - 1, at);
        },
        [&] { t.read(0, 0, &any_key, seen); });
    CHECK(happened == 1);
    CHECK(t.retries() == 1);
    CHECK(seen.value() == record{2, 2, 2, 2});
    CHECK(seen.state() == image_of(2, 2).state());
    // A writer has written a part of a value when somebody looks: the bucket is busy, and counts as before.
    table_at::image next = image_of(3, 3);
    std::uint64_t state = 0;
    REQUIRE(t.claim(0, 0, seen.state()));
    happened = pages.during([&] { state = at[0]; }, [&] { t.publish(0, 0, next); });
    CHECK(happened == 1);
    CHECK(state == (seen.state() | bucket_state::busy));
    t.read(0, 0, &any_key, seen);
    CHECK(seen.value() == record{3, 3, 3, 3});
    CHECK(t.retries() == 1);
  }
}

TEST_CASE("a bucket that is busy when many are fetched is fetched once more") {
  words_of_threads::common all;
  constexpr std::size_t words = table_at::image::words;
  all.words.resize(2 * words);
  const auto put = [&](std::size_t bucket, const table_at::image& i) {
    std::copy_n(i.of.data(), words, all.words.data() + bucket * words);
  };
  table_at t(2, {}, 1, [&](std::size_t) { return words_at(all, nullptr); });
  const std::array<std::uint64_t, 3> keys{any_key, any_key, 8};
  const home where{0, 1, 0, 2};
  const std::array<home, 3> homes{where, where, where};
  std::array<std::optional<record>, 3> values;
  weft::rma::table_statistics statistics;
  const auto find = [&] {
    values.fill(record{});
    find_together(t, {}, statistics, std::span<const std::uint64_t>(keys), homes,
                  std::span<std::optional<record>>(values));
    CHECK(!values[2]);
    return values[0] == values[1] ? values[0] : std::nullopt;
  };
  const table_at::image whole = image_of(5, 2);
  CHECK(find() == std::nullopt);
  put(1, whole);
  bool waited = false;
  words_at::meanwhile = [&] { waited = true; };
  CHECK(find() == record{5, 5, 5, 5});
  REQUIRE(waited);
  for (const bool busy : {true, false}) {  // and one of which words were old when it was fetched
    table_at::image torn = whole;
    torn.of[4] = 4;
    if (busy) torn.of[0] |= bucket_state::busy;
    put(1, torn);
    words_at::meanwhile = [&] { put(1, whole); };
    CHECK(find() == record{5, 5, 5, 5});
    CHECK(!words_at::meanwhile);
  }
  CHECK(statistics.found == 6);
  CHECK(statistics.missed == 6);
}

TEST_CASE("where memory is refused while many buckets are fetched, nothing is under way any more") {
  words_of_threads::common all;
  all.words.resize(2 * table_at::image::words);
  table_at t(2, {}, 1, [&](std::size_t) { return words_at(all, nullptr); });
  const std::array<std::uint64_t, 3> keys{1, 2, 3};
  const home where{0, 1, 0, 2};
  const std::array<home, 3> homes{where, where, where};
  weft::rma::table_statistics statistics;
  const auto is_refused = [](auto&& f) {
    words_at::until_refused = 3;
    words_at::under_way = false;
    CHECK_THROWS_AS(f(), std::bad_alloc);
    CHECK(!words_at::under_way);
  };
  std::array<std::optional<record>, 3> values;
  is_refused([&] {
    find_together(t, {}, statistics, std::span<const std::uint64_t>(keys), homes,
                  std::span<std::optional<record>>(values));
  });
  std::array<weft::rma::detail::collected<std::uint64_t, record>, 3> batch{};
  std::vector<bool> made(3);
  is_refused([&] {
    weft::rma::detail::insert_together(
        t, {}, statistics, std::span<const weft::rma::detail::collected<std::uint64_t, record>>(batch), homes,
        0, 3, made);
  });
  CHECK(made == std::vector<bool>(3));
}

TEST_CASE("a bucket is read as a whole") {
  for (const bool has_address : {true, false}) {
    std::uint64_t retries = 0;  // that there are some takes luck: other cases force them
    for (int part = 0; part < 200 && retries == 0; ++part) retries += in_one_bucket(has_address, {});
    in_one_bucket(has_address, {});
  }
  CHECK(in_one_bucket(false, weft::rma::lock_kind::gbh) == 0);
}

TEST_CASE("locks order what they protect") {
  for (const int group : {1, 2, 4}) {
    group_of_threads<rma_rw_lock>{group};
    group_of_threads<gated_lock<rma_rw_lock>>{group};
  }
  group_of_threads<one_group_lock>{4};
  group_of_threads<gated_lock<one_group_lock>>{4};
  group_of_threads<gbh_lock>{1};
  group_of_threads<mcs_writer_preference_lock>{1};
  group_of_threads<gated_lock<mcs_writer_preference_lock>>{1};
  group_of_threads<d_mcs_lock>{1};
}
