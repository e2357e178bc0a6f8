// SPDX-License-Identifier: BSL-1.0
// What the machine is, and how busy others keep it while something is measured.
#include "machine.hpp"

#include "outcome.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

namespace weft_bench {

namespace {

/// user + nice + system + irq + softirq + steal of all processors, in seconds.
double busy_now() {
  std::ifstream in("/proc/stat");
  std::string word;
  in >> word;
  double busy = 0;
  double ticks = 0;
  for (int field = 0; field < 8 && in >> ticks; ++field)
    if (field != 3 && field != 4) busy += ticks;  // 3: idle, 4: waiting for I/O
  return busy / double(sysconf(_SC_CLK_TCK));
}

std::string value_after(const char* file, const std::string& key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line))
    if (line.rfind(key, 0) == 0) {
      const auto at = line.find_first_not_of(" \t", line.find(':') + 1);
      return at == std::string::npos ? std::string() : line.substr(at);
    }
  return "unknown";
}

}  // namespace

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return unsigned(CPU_COUNT(&set));
}

void stay_on_one_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(std::max(sched_getcpu(), 0)), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
}

std::string machine_line() {
  utsname u{};
  uname(&u);
  std::ostringstream out;
  out << value_after("/proc/cpuinfo", "model name") << ", " << usable_processors() << " processors, "
      << u.sysname << ' ' << u.release << ", "
#ifdef __clang__
      << "clang " << __clang_version__;
#else
      << "gcc " << __VERSION__;
#endif
  return out.str();
}

double peak_resident_mb() {
  std::istringstream in(value_after("/proc/self/status", "VmHWM"));
  double kib = 0;
  in >> kib;
  return kib * 1024 / 1e6;
}

machine_load::machine_load() : start_(busy_now()) {}

double machine_load::busy_seconds() const { return busy_now() - start_; }

bool wait_until_idle(double patience) {
  const stopwatch waiting;
  const double window = 0.1;
  const double threshold = 0.1 * window * usable_processors();
  for (;;) {
    const machine_load load;
    usleep(useconds_t(window * 1e6));
    if (load.busy_seconds() <= threshold) return true;
    if (waiting.seconds() >= patience) return false;
  }
}

}  // namespace weft_bench
