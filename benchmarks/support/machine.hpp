// SPDX-License-Identifier: BSL-1.0
// What the machine is, and how busy others keep it while something is measured.
#pragma once

#include <string>

namespace weft_bench {

/// One line: processor, number of processors this process may use, kernel, compiler.
std::string machine_line();

/// Processors in this process's affinity mask.
unsigned usable_processors();

/// Keeps this process, and the threads that it starts from now on, on the processor where it is: what they
/// do in turns is then done by the same one.
void stay_on_one_processor();

/// Peak resident memory of this process so far, in MB (10^6 bytes).
double peak_resident_mb();

/// Busy time of the whole machine since construction, from the kernel's tick counters.
class machine_load {
 public:
  machine_load();

  /// Processor seconds spent by everybody, and by the hypervisor's other guests, since construction.
  double busy_seconds() const;

 private:
  double start_;
};

/// Waits until others leave the machine idle, at most `patience` seconds; returns whether they did.
bool wait_until_idle(double patience);

}  // namespace weft_bench
