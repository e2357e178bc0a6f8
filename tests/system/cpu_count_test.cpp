// SPDX-License-Identifier: BSL-1.0
// How many processors we may use: texts of the kernel, trees of control groups made by hand, the affinity
// mask.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "system/fake_system.hpp"

#include <weft/system/cpu_count.hpp>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

namespace base = weft::base;
using weft_test::fake_system;

namespace {

constexpr const char* version2_mount =
    "22 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev shared:4 master:2 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* version1_mounts =
    "31 22 0:27 / /sys/fs/cgroup/cpuset rw shared:5 - cgroup cgroup rw,cpuset\n"
    "32 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:6 - cgroup cgroup rw,cpu,cpuacct\n";

/// What a kernel for more processors than this machine's answers.
struct other_kernel {
  std::size_t mask_bytes = 0;  ///< shorter masks are refused
  std::size_t processors = 0;  ///< in every other bit of the mask
  int refusal = 0;             ///< if not 0: the error of every call
};
std::atomic<const other_kernel*> kernel{nullptr};
std::atomic<int> asked{0};

}  // namespace

// In place of the C library's.
extern "C" int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* mask) noexcept {
  std::memset(mask, 0, bytes);
  const other_kernel* const other = kernel;
  if (other == nullptr) return syscall(SYS_sched_getaffinity, thread, bytes, mask) < 0 ? -1 : 0;
  ++asked;
  if (other->refusal != 0 || bytes < other->mask_bytes) {
    errno = other->refusal != 0 ? other->refusal : EINVAL;
    return -1;
  }
  for (std::size_t i = 0; i < other->processors; ++i) CPU_SET_S(2 * i, bytes, mask);
  return 0;
}

TEST_CASE("cpu.max is rounded up to processors", "[base]") {
  CHECK_FALSE(base::cpus_of_cpu_max("max 100000\n").has_value());
  CHECK(base::cpus_of_cpu_max("100000 100000\n") == 1u);
  CHECK(base::cpus_of_cpu_max("100001 100000\n") == 2u);
  CHECK(base::cpus_of_cpu_max("150000 100000") == 2u);
  CHECK(base::cpus_of_cpu_max("1000 100000\n") == 1u);
  CHECK(base::cpus_of_cpu_max("400000") == 4u);  // the period may be left out
  CHECK(base::cpus_of_cpu_max("18446744073709551615 1") == UINT32_MAX);
  for (const char* text : {"", "\n", "max", "nonsense", "-1 100000", "100000 0", "0 100000", "100000 x"}) {
    INFO("'" << text << "'");
    CHECK_FALSE(base::cpus_of_cpu_max(text).has_value());
  }
}

TEST_CASE("the old quota and period are rounded up to processors", "[base]") {
  CHECK_FALSE(base::cpus_of_cfs("-1\n", "100000\n").has_value());
  CHECK(base::cpus_of_cfs("250000\n", "100000\n") == 3u);
  CHECK(base::cpus_of_cfs("50000\n", "100000\n") == 1u);
  CHECK_FALSE(base::cpus_of_cfs("", "").has_value());
  CHECK_FALSE(base::cpus_of_cfs("50000", "0").has_value());
}

TEST_CASE("without control groups there is no quota", "[base]") {
  CHECK_FALSE(fake_system().quota().has_value());
  CHECK_FALSE(fake_system().file("/proc/self/mountinfo", version2_mount).quota().has_value());
  CHECK_FALSE(fake_system().file("/proc/self/cgroup", "0::/a\n").quota().has_value());
  CHECK_FALSE(fake_system()
                  .file("/proc/self/mountinfo", "garbage\n\n- -\n")
                  .file("/proc/self/cgroup", "::\nx")
                  .quota()
                  .has_value());
}

TEST_CASE("version 2: the tightest quota on the path of parents counts", "[base]") {
  fake_system system;
  system.file("/proc/self/mountinfo", version2_mount)
      .file("/proc/self/cgroup", "0::/user.slice/job one/leaf\n")
      .file("/sys/fs/cgroup/user.slice/job one/leaf/cpu.max", "max 100000\n");
  CHECK_FALSE(system.quota().has_value());
  system.file("/sys/fs/cgroup/user.slice/cpu.max", "700000 100000\n");
  CHECK(system.quota() == 7u);
  system.file("/sys/fs/cgroup/user.slice/job one/cpu.max", "250000 100000\n");
  CHECK(system.quota() == 3u);
  system.file("/sys/fs/cgroup/user.slice/job one/leaf/cpu.max", "800000 100000\n");
  CHECK(system.quota() == 3u);
  system.file("/sys/fs/cgroup/user.slice/job one/leaf/cpu.max", "50000 100000\n");
  CHECK(system.quota() == 1u);
  // A sibling does not count.
  system.file("/sys/fs/cgroup/user.slice/job one/leaf/cpu.max", "max\n")
      .file("/sys/fs/cgroup/cpu.max", "900000\n");
  system.file("/sys/fs/cgroup/other/cpu.max", "100000 100000\n");
  CHECK(system.quota() == 3u);
}

TEST_CASE("version 2 in a container: the mount shows a part of the tree", "[base]") {
  fake_system namespaced;  // the usual case: the container sees its own group as the root
  namespaced.file("/proc/self/mountinfo", version2_mount)
      .file("/proc/self/cgroup", "0::/\n")
      .file("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  CHECK(namespaced.quota() == 2u);

  fake_system outer_path;  // the path is the host's, the mount shows only what is below /docker/abc
  outer_path.file("/proc/self/mountinfo", "30 22 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
      .file("/proc/self/cgroup", "0::/docker/abc/inner\n")
      .file("/sys/fs/cgroup/cpu.max", "400000 100000\n")
      .file("/sys/fs/cgroup/inner/cpu.max", "300000 100000\n");
  CHECK(outer_path.quota() == 3u);
  outer_path.file("/proc/self/cgroup", "0::/docker/abcdef\n");  // not below the mount's root
  CHECK(outer_path.quota() == 4u);
  outer_path.file("/proc/self/cgroup", "0::/docker/abc\n");  // the mount's root itself
  CHECK(outer_path.quota() == 4u);
  outer_path.file("/proc/self/cgroup", "0::/inner\n");
  CHECK(outer_path.quota() == 4u);
  outer_path.file("/proc/self/cgroup", "0::/../../elsewhere\n");
  CHECK(outer_path.quota() == 4u);
}

TEST_CASE("version 2: the mount may be anywhere", "[base]") {
  fake_system system;
  system.file("/proc/self/mountinfo", "30 22 0:26 / /mnt/control\\040groups rw - cgroup2 none rw\n")
      .file("/proc/self/cgroup", "0::/a\n")
      .file("/mnt/control groups/a/cpu.max", "500000 100000\n");
  CHECK(system.quota() == 5u);
}

TEST_CASE("version 2: a backslash that starts no octal number is one", "[base]") {
  for (const char* folder :
       {"/mnt/a\\940z", "/mnt/a\\090z", "/mnt/a\\00z", "/mnt/a\\00/z", "/mnt/a\\04", "/mnt/a\\"}) {
    INFO(folder);
    fake_system system;
    system.file("/proc/self/mountinfo", std::string("30 22 0:26 / ") + folder + " rw - cgroup2 none rw\n")
        .file("/proc/self/cgroup", "0::/a\n")
        .file(std::string(folder) + "/a/cpu.max", "500000 100000\n");
    CHECK(system.quota() == 5u);
  }
}

TEST_CASE("version 2: lines that look like it, and folders in place of files, are passed over", "[base]") {
  fake_system system;
  system.file("/proc/self/mountinfo", version2_mount)
      .file("/proc/self/cgroup", "0:cpu:/tight\n1::/tight\n0::/a/b\n")
      .file("/sys/fs/cgroup/tight/cpu.max", "100000 100000\n")
      .file("/sys/fs/cgroup/a/b/cpu.max/a_folder", "100000 100000\n")
      .file("/sys/fs/cgroup/a/cpu.max", "600000 100000\n");
  CHECK(system.quota() == 6u);
}

TEST_CASE("version 1: the controller cpu, with its parents", "[base]") {
  fake_system system;
  system.file("/proc/self/mountinfo", version1_mounts)
      .file("/proc/self/cgroup", "7:cpuset:/x\n4:cpu,cpuacct:/jobs/mine\n1:name=systemd:/y\n0::/z\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/jobs/mine/cpu.cfs_quota_us", "-1\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/jobs/mine/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(system.quota().has_value());
  system.file("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "350000\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  CHECK(system.quota() == 4u);
  system.file("/sys/fs/cgroup/cpu,cpuacct/jobs/mine/cpu.cfs_quota_us", "20000\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/jobs/mine/cpu.cfs_period_us", "10000\n");
  CHECK(system.quota() == 2u);
}

TEST_CASE("both versions at once: the tighter one counts", "[base]") {
  fake_system system;
  system.file("/proc/self/mountinfo", std::string(version1_mounts) + version2_mount)
      .file("/proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/b\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n")
      .file("/sys/fs/cgroup/b/cpu.max", "600000 100000\n");
  CHECK(system.quota() == 3u);
  system.file("/sys/fs/cgroup/b/cpu.max", "200000 100000\n");
  CHECK(system.quota() == 2u);
}

TEST_CASE("the affinity mask counts, not the machine", "[base]") {
  CHECK(base::affinity_cpus() >= 1);
  CHECK(base::usable_cpus() >= 1);
  CHECK(base::usable_cpus() <= base::affinity_cpus());
  unsigned pinned = 0;
  unsigned usable = 0;
  std::thread([&] {
    cpu_set_t present;
    CPU_ZERO(&present);
    sched_getaffinity(0, sizeof present, &present);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &present)) ++cpu;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    pinned = base::affinity_cpus();
    usable = base::usable_cpus();
  }).join();
  CHECK(pinned == 1);
  CHECK(usable == 1);
}

TEST_CASE("on a machine with thousands of processors the mask grows until the kernel accepts it", "[base]") {
  const auto on = [](const other_kernel& other) {
    asked = 0;
    kernel = &other;
    const unsigned cpus = base::affinity_cpus();
    kernel = nullptr;
    return cpus;
  };
  CHECK(on({1024, 3000, 0}) == 3000);
  CHECK(asked == 4);  // 128, 256, 512 and 1024 bytes
  CHECK(on({128, 7, 0}) == 7);
  CHECK(asked == 1);
  // A kernel that refuses every length, gives no answer, or an empty one: one processor is there at least.
  CHECK(on({SIZE_MAX, 7, 0}) == 1);
  CHECK(asked == 13);
  CHECK(on({0, 7, EPERM}) == 1);
  CHECK(asked == 1);
  CHECK(on({0, 0, 0}) == 1);
}
