// SPDX-License-Identifier: BSL-1.0
// Orders of processors on machines that are described by hand, and lists of processors as texts.
#include "support/catch.hpp"
#include "system/fake_system.hpp"

#include <weft/system/topology.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace base = weft::base;
using list = std::vector<unsigned>;
using weft_test::fake_system;

namespace {

void describe(fake_system& system, unsigned processor, const char* package, const char* siblings) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
  if (package != nullptr) system.file(folder + "physical_package_id", package);
  if (siblings != nullptr) system.file(folder + "thread_siblings_list", siblings);
}

/// Two packages with two cores of two hardware threads each, numbered as usual: 0, 4 is the first core.
void describe_two_packages(fake_system& system) {
  describe(system, 0, "0\n", "0,4\n");
  describe(system, 1, "0\n", "1,5\n");
  describe(system, 2, "1\n", "2,6\n");
  describe(system, 3, "1\n", "3,7\n");
  describe(system, 4, "0\n", "0,4\n");
  describe(system, 5, "0\n", "1,5\n");
  describe(system, 6, "1\n", "2,6\n");
  describe(system, 7, "1\n", "3,7\n");
}

}  // namespace

TEST_CASE("compact fills a core, then a package; scatter takes packages in turn, siblings last") {
  fake_system system;
  describe_two_packages(system);
  const list all{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(base::compact_order(all, system.root()) == list{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(base::scatter_order(all, system.root()) == list{0, 2, 1, 3, 4, 6, 5, 7});
}

TEST_CASE("orders contain the processors of the mask only, and rank them among each other") {
  fake_system system;
  describe_two_packages(system);
  // Of core 0,4 only the second thread, of package 1 only one core.
  CHECK(base::compact_order({1, 3, 4, 5, 7}, system.root()) == list{4, 1, 5, 3, 7});
  CHECK(base::scatter_order({1, 3, 4, 5, 7}, system.root()) == list{4, 3, 1, 7, 5});
}

TEST_CASE("without a description processors are cores of one package, in ascending order") {
  fake_system system;
  CHECK(base::compact_order({2, 5, 9}, system.root()) == list{2, 5, 9});
  CHECK(base::scatter_order({2, 5, 9}, system.root()) == list{2, 5, 9});
  describe(system, 2, "-1\n", "\n");
  describe(system, 5, "nonsense", "2-x");
  describe(system, 9, nullptr, nullptr);
  CHECK(base::compact_order({2, 5, 9}, system.root()) == list{2, 5, 9});
  CHECK(base::scatter_order({2, 5, 9}, system.root()) == list{2, 5, 9});
  CHECK(base::compact_order({}, system.root()).empty());
}

TEST_CASE("this machine's orders contain each of its processors once") {
  const list mask = base::affinity_mask();
  for (list order : {base::compact_order(mask), base::scatter_order(mask)}) {
    std::sort(order.begin(), order.end());
    CHECK(order == mask);
  }
}

TEST_CASE("lists of processors are read in their order, and written back") {
  CHECK(base::processor_list("0") == list{0});
  CHECK(base::processor_list("0-3,8\n") == list{0, 1, 2, 3, 8});
  CHECK(base::processor_list("8,0-1,0") == list{8, 0, 1, 0});
  CHECK(base::processor_list("5-5") == list{5});
  for (const char* text : {"", "\n", "x", "1,", ",1", "1,,2", "2-1", "1-", "-1", "1-2-3", "1 ", " 1", "+1",
                           "65536", "0-99999999999", "18446744073709551615", "18446744073709551616"}) {
    INFO("'" << text << "'");
    CHECK(base::processor_list(text).empty());
  }
  CHECK(base::to_text({}).empty());
  CHECK(base::to_text({0}) == "0");
  CHECK(base::to_text({0, 1, 2, 3, 8}) == "0-3,8");
  CHECK(base::to_text({8, 0, 1, 0}) == "8,0-1,0");
}
