// SPDX-License-Identifier: BSL-1.0
// Hash tables of a job: every operation and backend, alone and against each other; files; what is refused.
// Run by mpiexec; process 0 prints "right" if all processes found everything right. usage: table_program
// <path of a file>
#include "table_cases.hpp"

#include <weft/rma.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

namespace {

/// Other numbers of processes: half of them read what all have written, and the reverse.
void other_numbers(const weft::mpi::communicator& world, const std::string& path) {
  const auto me = static_cast<std::uint64_t>(world.rank()), n = static_cast<std::uint64_t>(world.size());
  const bool in_half = world.rank() < (world.size() + 1) / 2;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(world.handle(), in_half ? 0 : 1, world.rank(), &part);
  if (in_half) {
    const weft::mpi::communicator half(part);
    RIGHT(half.size() == (world.size() + 1) / 2);
    rma::hash_table<std::uint64_t, record> again(half, {.buckets_per_process = 1000});
    again.load(path);
    RIGHT(again.size() == 100 * n);
    for (std::uint64_t k = 0; k < 100 * n; ++k) RIGHT(again.find(k).value_or(record{}).of[12] == k / n);
    half.barrier();
    for (std::uint64_t k = me; k < 100 * n; k += static_cast<std::uint64_t>(half.size()))
      if (k % 3 == 0) again.erase(k);
    half.barrier();
    again.save(path + "-half");
  }
  MPI_Comm_free(&part);
  world.barrier();
  rma::hash_table<std::uint64_t, record> more(world, {.buckets_per_process = 300});
  more.load(path + "-half");
  for (std::uint64_t k = 0; k < 100 * n; ++k) {
    const auto found = more.find(k);
    RIGHT(found.has_value() == (k % 3 != 0));
    if (found) RIGHT(found->whole() && found->of[0] == k / n);
  }
  world.barrier();
  if (world.rank() == 0) std::remove((path + "-half").c_str());
  if (world.rank() == 0) std::remove(path.c_str());
}

/// The same over messages, where each access takes as long as a hundred elsewhere.
void over_messages(const weft::mpi::communicator& world) {
  constexpr rma::backend backend = rma::backend::messages;
  alone(world, {.backend = backend});
  alone(world, {.backend = backend, .lock = rma::lock_kind::rma_rw, .ranges = 3});
  against_each_other(world, {.backend = backend}, 30);
  for (const rma::lock_kind kind : {rma::lock_kind::gbh_backoff, rma::lock_kind::mcs_writer_preference,
                                    rma::lock_kind::d_mcs, rma::lock_kind::rma_rw})
    against_each_other(world, {.backend = backend, .lock = kind, .ranges = 2}, 10);
  full_and_cache(world, backend);
  buffered(world, {.backend = backend});
  many_keys<weft::mpi::communicator, rma::hash_bytes<std::uint64_t>>(world, {.backend = backend});
  interrupted_batches(world, backend);
  nested_updates(world, {.backend = backend, .lock = rma::lock_kind::mcs_writer_preference});
  churn(world, backend);
  mixed(world, {.backend = backend}, 60);
  mixed(world, {.backend = backend, .lock = rma::lock_kind::d_mcs, .ranges = 2}, 30);
  evictions(world, {.backend = backend}, 3);
  evictions(world, {.backend = backend, .lock = rma::lock_kind::rma_rw, .ranges = 2}, 10);
  other_hashes(world, backend);
}

}  // namespace

int main(int argc, char** argv) {
  weft::mpi::environment mpi(argc, argv);
  weft::mpi::communicator& world = mpi.world();
  for (const rma::backend backend : {rma::backend::shared, rma::backend::mpi}) {
    alone(world, {.backend = backend});
    against_each_other(world, {.backend = backend}, 300);
    full_and_cache(world, backend);
    buffered(world, {.backend = backend});
    for (const rma::lock_kind kind :
         {rma::lock_kind::mpi, rma::lock_kind::gbh, rma::lock_kind::gbh_backoff,
          rma::lock_kind::mcs_writer_preference, rma::lock_kind::d_mcs, rma::lock_kind::rma_rw})
      against_each_other(world, {.backend = backend, .lock = kind, .ranges = 2}, 60);
    alone(world, {.backend = backend, .lock = rma::lock_kind::rma_rw, .ranges = 3});
    buffered(world, {.backend = backend, .lock = rma::lock_kind::gbh_backoff, .ranges = 2});
    many_keys<weft::mpi::communicator, rma::hash_bytes<std::uint64_t>>(world, {.backend = backend});
    many_keys<weft::mpi::communicator, bad_hash>(world, {.backend = backend});
    many_keys<weft::mpi::communicator, rma::hash_bytes<std::uint64_t>>(
        world, {.backend = backend, .lock = rma::lock_kind::rma_rw, .ranges = 3});
    interrupted_batches(world, backend);
    nested_updates(world, {.backend = backend});
    nested_updates(world, {.backend = backend, .lock = rma::lock_kind::mcs_writer_preference});
    churn(world, backend);
    mixed(world, {.backend = backend}, 1000);
    mixed(world, {.backend = backend, .lock = rma::lock_kind::gbh_backoff, .ranges = 2}, 300);
    evictions(world, {.backend = backend}, backend == rma::backend::shared ? 400 : 40);
    evictions(world, {.backend = backend, .lock = rma::lock_kind::rma_rw, .ranges = 2}, 40);
    other_hashes(world, backend);
  }
  if (world.size() > 1) torn_reads(world, rma::backend::shared);
  over_messages(world);
  RIGHT(has(refusal<std::exception>([&] { rma::hash_table<int, int>(world, {.ranges = 0}); }),
            "one to as many ranges"));
  const std::string path =
      std::string(argc > 1 ? argv[1] : "/tmp/weft-table") + "-" + std::to_string(world.size());
  files(world, path);
  other_numbers(world, path);
  const int wrong = world.sum(failures.load());
  if (world.rank() == 0 && wrong == 0) std::printf("right\n");
  return wrong == 0 ? 0 : 1;
}
