// SPDX-License-Identifier: BSL-1.0
// Messages that nobody receives for a while: what each further one costs does not grow with their number, all
// arrive, and what was sent is forgotten, of which its sender is told. usage: pending_program; prints "right"
// in process 0.
#include <weft/cluster/detail/mpi_transport.hpp>
#include <weft/mpi/environment.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace {

long looks = 0;  ///< at requests, so far
long done = 0;   ///< requests that were found to be complete

bool check(bool right, const char* what) {
  if (!right) std::printf("wrong: %s\n", what);
  return right;
}

}  // namespace

// MPI's profiling interface: these are called in place of the library's.
extern "C" int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  ++looks;
  const int code = PMPI_Test(request, flag, status);
  done += *flag;
  return code;
}
extern "C" int MPI_Testsome(int n, MPI_Request* requests, int* some, int* which, MPI_Status* statuses) {
  looks += n;
  const int code = PMPI_Testsome(n, requests, some, which, statuses);
  if (*some != MPI_UNDEFINED) done += *some;
  return code;
}

int main(int argc, char** argv) {
  const weft::mpi::environment mpi(argc, argv);
  weft::remote::mpi_transport by(MPI_COMM_WORLD);
  constexpr long messages = 400;
  constexpr std::size_t size = 128 << 10;  // too long to be sent before somebody receives it
  constexpr long calls = 1000;
  weft::remote::bytes came;
  std::vector<int> told(messages);
  const auto count_told = [&told] { return std::accumulate(told.begin(), told.end(), 0L); };
  bool right = true;
  const bool sends = by.rank() == 0, receives = by.rank() == by.size() - 1;
  if (sends) {
    for (long i = 0; i < messages; ++i) {
      weft::remote::bytes message(size);
      std::memcpy(message.data(), &i, sizeof i);
      std::memcpy(message.data() + size - sizeof i, &i, sizeof i);
      by.send(by.size() - 1, std::move(message), [&told, i] { ++told[static_cast<std::size_t>(i)]; });
    }
    right &= check(count_told() <= done, "a message that has not left is said to have");
    right &= check(done < messages / 4, "the messages are not pending, so this test tells nothing");
    right &= check(looks > 0 && looks <= 8 * messages, "sending looks at all that are pending");
    if (by.size() > 1) {
      const long before = looks;
      for (long i = 0; i < calls; ++i) right &= check(by.receive(came) < 0, "a message that nobody has sent");
      right &=
          check(looks > before && looks - before <= 8 * calls, "receiving looks at all that are pending");
    }
  }
  by.group().barrier();
  if (receives) {
    std::vector<bool> seen(messages);
    for (long n = 0; n < messages;) {
      if (by.receive(came) < 0) continue;
      ++n;
      long first = -1, last = -1;
      std::memcpy(&first, came.data(), sizeof first);
      std::memcpy(&last, came.data() + came.size() - sizeof last, sizeof last);
      right &= check(came.size() == size && first == last && first >= 0 && first < messages, "contents");
      if (!right) break;
      right &= check(!seen[static_cast<std::size_t>(first)], "a message that came twice");
      seen[static_cast<std::size_t>(first)] = true;
    }
  }
  if (sends) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (done < messages && std::chrono::steady_clock::now() < end)
      right &= check(by.receive(came) < 0, "one message more");
    right &= check(done == messages, "what was sent is not forgotten");
    right &= check(told == std::vector<int>(messages, 1), "the sender is not told once of each message");
  }
  right = by.group().min(right ? 1 : 0) == 1;
  if (by.rank() == 0 && right) std::printf("right\n");
  return right ? 0 : 1;
}
