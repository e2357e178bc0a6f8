// SPDX-License-Identifier: BSL-1.0
// Windows and hash tables of threads of one process, without any MPI: what they do as those of processes do,
// and what is their own.
#include "fault/waiting.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "table_cases.hpp"
#include "window_cases.hpp"

#include <weft/rma/threads.hpp>

#include <functional>
#include <utility>

#ifdef MPI_VERSION
#error "windows of threads need no MPI"
#endif

namespace {

using rma::thread_group;

template <class F>
void in_groups(std::initializer_list<int> sizes, F f) {
  for (const int n : sizes) {
    failures = 0;
    rma::run_threads(n, f);
    CHECK(failures == 0);
  }
}

/// A key one of whose comparisons lets something happen meanwhile: in the middle of an operation of the
/// table.
struct watched {
  std::uint64_t of;
  static inline int comparisons = 0;  // that are left before it
  static inline std::function<void()> meanwhile;
  bool operator==(const watched& other) const {
    if (meanwhile && --comparisons == 0) std::exchange(meanwhile, nullptr)();
    return of == other.of;
  }
};
/// All keys belong to the same places.
struct same_hash {
  std::uint64_t operator()(const watched&) const { return 0; }
};
using watched_table = rma::thread_hash_table<watched, std::uint64_t, same_hash>;
/// Lets `f` happen in the given comparison within `operation`.
template <class F>
void let_happen(std::function<void()> f, int comparison, F operation) {
  watched::comparisons = comparison;
  watched::meanwhile = std::move(f);
  operation();
  RIGHT(!watched::meanwhile);  // it has happened
}

}  // namespace

TEST_CASE("windows of threads are as those of processes") {
  in_groups({1, 2, 4}, [](const thread_group& g) {
    const auto backend = rma::backend::threads;
    elements<std::uint64_t>(g, backend);
    elements<double>(g, backend);
    elements<char>(g, backend);
    elements<wide>(g, backend);
    elements<aligned>(g, backend);
    atomics<std::uint64_t>(g, backend);
    atomics<std::int32_t>(g, backend);
    together<std::int32_t>(g, backend);
    together<double>(g, backend);
    numbers(g, backend);
  });
}

TEST_CASE("locks of threads are as those of processes") {
  in_groups({1, 2, 4}, [](const thread_group& g) {
    for (const rma::lock_kind kind :
         {rma::lock_kind::gbh, rma::lock_kind::gbh_backoff, rma::lock_kind::mcs_writer_preference,
          rma::lock_kind::d_mcs, rma::lock_kind::rma_rw}) {
      locks(g, {.lock = kind});
      if (rma::has_shared(kind)) hot(g, {.lock = kind}, 50);
    }
    locks(g, {.lock = rma::lock_kind::mcs_writer_preference, .lock_all = true});
    locks(g, {.lock = rma::lock_kind::rma_rw, .lock_all = true, .group = 1, .most_writers_in_a_row = 2});
    locks(g, {.lock = rma::lock_kind::rma_rw, .lock_all = true, .most_writers_in_a_row = 2});
    locks(g, {.lock = rma::lock_kind::rma_rw, .group = 2});
  });
}

TEST_CASE("hash tables of threads are as those of processes") {
  in_groups({1, 3}, [](const thread_group& g) {
    const rma::table_options plain{.backend = rma::backend::threads};
    rma::table_options locked = plain;
    locked.lock = rma::lock_kind::gbh_backoff, locked.ranges = 2;
    for (const rma::table_options& options : {plain, locked}) {
      alone(g, options);
      against_each_other(g, options, 300);
      buffered(g, options);
      many_keys<thread_group, rma::hash_bytes<std::uint64_t>>(g, options);
      many_keys<thread_group, bad_hash>(g, options);
      nested_updates(g, options);
      mixed(g, options, 400);
      evictions(g, options, 60);
    }
    full_and_cache(g, rma::backend::threads);
    interrupted_batches(g, rma::backend::threads);
    churn(g, rma::backend::threads);
    other_hashes(g, rma::backend::threads);
    if (g.size() > 1) torn_reads(g, rma::backend::threads);
  });
}

TEST_CASE("what happens in the middle of an operation of a hash table") {
  in_groups({1}, [](const thread_group& g) {
    // A bucket comes to another key between a search's looks at key and value.
    watched_table one(g, {.buckets_per_process = 1, .evict = true, .places = 1});
    one.insert({1}, 10);
    let_happen([&] { one.insert({2}, 20); }, 1, [&] { RIGHT(!one.find({1})); });
    RIGHT(one.find({2}) == 20);
    RIGHT(one.statistics().retried == 1);
    // A value changes between the look of a change and its claim.
    const auto increment = [](std::uint64_t& v) { ++v; };
    let_happen([&] { one.update({2}, increment); }, 2, [&] { one.update({2}, increment); });
    RIGHT(one.find({2}) == 22);
    // A change is seen though key and size are as before.
    let_happen([&] { one.update({2}, increment); }, 1, [&] { RIGHT(one.find({2}) == 23); });
    RIGHT(one.statistics().retried == 2);
    // A key comes to another place of a cache after an insert has found none with it.
    watched_table two(g, {.buckets_per_process = 2, .evict = true, .places = 2});
    two.insert({8}, 0), two.insert({9}, 0);
    let_happen([&] { two.insert({1}, 10); }, 4, [&] { two.insert({1}, 11); });
    std::vector<std::uint64_t> values;
    two.for_each_local([&](const watched& k, std::uint64_t v) {
      if (k.of == 1) values.push_back(v);
    });
    RIGHT(values.size() == 1);
    RIGHT(two.statistics().evicted == 2);
  });
}

TEST_CASE("a key that threads insert at once is in a cache once") {
  using large = std::array<std::uint64_t, 500>;
  in_groups({2, 3}, [](const thread_group& g) {
    static std::atomic<int> ready{0};
    rma::thread_hash_table<std::uint64_t, large> cache(
        g, {.buckets_per_process = 4, .evict = true, .places = 4});
    std::uint64_t twice = 0;
    for (std::uint64_t k = 1; k <= 1500; ++k) {
      g.barrier();
      ready = 0;
      g.barrier();
      for (++ready; ready < g.size();) std::this_thread::yield();
      cache.insert(k, large{k});
      g.barrier();
      std::uint64_t copies = 0;
      cache.for_each_local([&](std::uint64_t key, const large&) { copies += key == k; });
      twice += g.sum(copies) != 1;
    }
    RIGHT(twice == 0);
  });
}

TEST_CASE("a hash table of threads in a file") {
  const std::string path = "/tmp/weft-threads-table-" + std::to_string(::getpid());
  in_groups({3}, [&](const thread_group& g) { files(g, path); });
  in_groups({2}, [&](const thread_group& g) {  // the same, in another number
    rma::thread_hash_table<std::uint64_t, record> again(g, {.buckets_per_process = 1000});
    again.load(path);
    RIGHT(again.size() == 300);
    for (std::uint64_t k = 0; k < 300; ++k) RIGHT(again.find(k).value_or(record{}).of[12] == k / 3);
  });
  std::remove(path.c_str());
}

TEST_CASE("what threads put together") {
  in_groups({1, 2, 5}, [](const thread_group& g) {
    const int n = g.size();
    RIGHT(g.sum(g.rank()) == n * (n - 1) / 2);
    RIGHT(g.max(g.rank()) == n - 1);
    RIGHT(g.min(1.5 + g.rank()) == 1.5);
    RIGHT(g.broadcast(10 + g.rank(), n - 1) == 9 + n);
    RIGHT(g.gather(g.rank() * 2).back() == 2 * (n - 1));
  });
  CHECK(refusal<weft::error>([] { rma::run_threads(0, [](const thread_group&) {}); }) ==
        "weft: a group has at least one thread");
}

TEST_CASE("what windows of threads refuse") {
  in_groups({1, 2}, [](const thread_group& g) {
    using window = rma::thread_window<int>;
    RIGHT(window(g, 1).backend() == rma::backend::threads);
    RIGHT(window(g, 1).one_sided());
    RIGHT(refusal<weft::error>([&] { window(g, 1, {.lock = rma::lock_kind::mpi}); }) ==
          "weft: threads have no locks of the kind mpi");
    RIGHT(refusal<weft::error>([&] { window(g, 1, {.backend = rma::backend::messages}); }) ==
          "weft: a window of threads cannot have the backend messages");
    RIGHT(refusal<std::length_error>([&] { window(g, ~std::size_t{0}); }).find("too large") !=
          std::string::npos);
#ifndef WEFT_TEST_SANITIZED  // sanitizers end the program instead
    RIGHT(refusal<std::bad_alloc>([&] { window(g, std::size_t{1} << 58); }) != "nothing was thrown");
#endif
    const auto size = 1 + static_cast<std::size_t>(g.rank());
    if (g.size() > 1)
      RIGHT(refusal<weft::error>([&] { window(g, size); }) ==
            "weft: processes make one window with different sizes or options");
  });
}

TEST_CASE("an exception of one thread ends the waiting of the others") {
  std::atomic<int> released{0};
  for (int from = 0; from < 3; ++from)
    CHECK(refusal<std::runtime_error>([&] {
            rma::run_threads(3, [&](const thread_group& g) {
              rma::thread_window<int> w(g, 1);
              {
                const rma::exclusive_lock hold(w, 0);
                if (g.rank() == from) throw std::runtime_error("the disk is on fire");
              }
              try {
                g.barrier();
              } catch (const weft::error& e) {
                released +=
                    e.what() == std::string("weft: another thread of the group has ended by an exception");
                throw;
              }
            });
          }) == "the disk is on fire");
  CHECK(released == 6);
  // Also where nobody says why: the thread that fails has caught its own exception.
  CHECK(refusal<weft::error>([&] {
          rma::run_threads(2, [](const thread_group& g) {
            if (g.rank() == 0) {
              try {
                const rma::thread_window<int> w(g, 1);
                throw 1;
              } catch (int) {
                return;
              }
            }
            const rma::thread_window<int> w(g, 1);
            g.barrier();
          });
        }) == "weft: another thread of the group has ended by an exception");
}

TEST_CASE("who leaves a window with a lock that others wait for ends the process") {
  const weft_test::child_result child = weft_test::run_in_child([] {
    rma::run_threads(2, [](const thread_group& g) {
      rma::thread_window<int> w(g, 1);
      if (g.rank() == 0) w.lock_exclusive(0);
      g.barrier();
      if (g.rank() == 0) throw std::runtime_error("the disk is on fire");
      const rma::exclusive_lock hold(w, 0);
    });
  });
  CHECK(child.aborted());
  CHECK(child.output.find(
            "weft: thread 0 of a group leaves by an exception a window of which it holds locks") !=
        std::string::npos);
}
