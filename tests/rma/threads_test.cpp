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
#include <weft/rma/detail/mcs_wp_lock.hpp>
#include <weft/rma/detail/rma_rw_lock.hpp>
#include <weft/rma/detail/shared_words.hpp>

#include <array>
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

}  // namespace

TEST_CASE("a bucket is read as a whole, or once more") {
  for (const bool has_address : {true, false}) {
    std::uint64_t retries = 0;
    for (int part = 0; part < 5000 && retries == 0; ++part) retries += in_one_bucket(has_address, {});
    CHECK(retries > 0);
    in_one_bucket(has_address, {});
  }
  CHECK(in_one_bucket(false, weft::rma::lock_kind::gbh) == 0);
}

TEST_CASE("locks order what they protect") {
  for (const int group : {1, 2, 4}) {
    group_of_threads<rma_rw_lock>{group};
    group_of_threads<gated_lock<rma_rw_lock>>{group};
  }
  group_of_threads<gbh_lock>{1};
  group_of_threads<mcs_writer_preference_lock>{1};
  group_of_threads<gated_lock<mcs_writer_preference_lock>>{1};
  group_of_threads<d_mcs_lock>{1};
}
