// SPDX-License-Identifier: BSL-1.0
// The locks between threads of one process, which stand for processes: the same steps on memory that they
// share, so that the thread sanitizer sees whether a lock orders what it protects.
#include "support/catch.hpp"

#include <weft/rma/detail/acquire.hpp>
#include <weft/rma/detail/d_mcs_lock.hpp>
#include <weft/rma/detail/gated_lock.hpp>
#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/mcs_wp_lock.hpp>
#include <weft/rma/detail/rma_rw_lock.hpp>
#include <weft/rma/detail/shared_words.hpp>

#include <random>
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

}  // namespace

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
