// SPDX-License-Identifier: BSL-1.0
// A job that may be killed at any moment, and goes on from its checkpoints. usage: survive_program
// <directory> <seconds> <leaves> <work file>; prints how many tasks it finds, and the result. Each leaf of
// its tree, which takes a millisecond of a processor, is counted in the work file, also if the job is killed.
#include <weft/cluster.hpp>
#include <weft/weft.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

std::atomic<std::uint64_t>* executed = nullptr;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return (a ^ b >> 7) * 0x9E3779B97F4A7C15u + b; }

/// How many leaves the first part of a tree has: different shares.
std::uint64_t first_part(std::uint64_t seed, std::uint64_t leaves) {
  return std::max<std::uint64_t>(1, leaves * (1 + seed % 3) / 4);
}
std::uint64_t serial(std::uint64_t seed, std::uint64_t leaves) {
  if (leaves < 2) return mix(seed, 1);
  const std::uint64_t left = first_part(seed, leaves);
  return mix(serial(mix(seed, 2), left), serial(mix(seed, 3), leaves - left));
}

double processor_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
void compute_for_a_millisecond() {
  for (const double end = processor_time() + 1e-3; processor_time() < end;) {
  }
}

void join(weft::read<std::uint64_t> a, weft::read<std::uint64_t> b, weft::write<std::uint64_t> r) {
  r = mix(*a, *b);
}
void tree(std::uint64_t seed, std::uint64_t leaves, weft::write<std::uint64_t> r) {
  if (leaves < 2) {
    compute_for_a_millisecond();
    executed->fetch_add(1);
    r = mix(seed, 1);
    return;
  }
  const std::uint64_t left = first_part(seed, leaves);
  weft::shared<std::uint64_t> a, b;
  weft::fork(tree, mix(seed, 2), left, a);
  weft::fork(tree, mix(seed, 3), leaves - left, b);
  weft::fork(join, a, b, r);
}

int run(int argc, char** argv) {
  const std::string directory = argv[1];
  const std::uint64_t leaves = std::strtoull(argv[3], nullptr, 10);
  const int file = ::open(argv[4], O_RDWR | O_CREAT, 0666);
  if (file < 0 || ::ftruncate(file, sizeof *executed) != 0) throw std::runtime_error("no work file");
  void* const shared = ::mmap(nullptr, sizeof *executed, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no work file");
  executed = static_cast<std::atomic<std::uint64_t>*>(shared);

  weft::cluster c(argc, argv,
                  {.runtime = {.workers = 1},
                   .checkpoint = directory,
                   .checkpoint_seconds = std::strtod(argv[2], nullptr)});
  const std::size_t found = c.resume(directory);
  if (c.rank() == 0) std::printf("resumed %zu\n", found), std::fflush(stdout);
  const std::uint64_t result = c.run([leaves] {
    weft::shared<std::uint64_t> r;
    weft::fork(tree, std::uint64_t{7}, leaves, r);
    weft::sync();
    return r.get();
  });
  if (c.rank() == 0) std::printf("result %s\n", result == serial(7, leaves) ? "right" : "wrong");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  return run(argc, argv);
}
