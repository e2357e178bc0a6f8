// SPDX-License-Identifier: BSL-1.0
// What may go to another process as the body of a thread.
#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <string>
#include <vector>

struct walker {
  int to = 1;
  std::vector<std::string> names{};
  void operator()() {
    if (weft::this_thread::process() != to) weft::this_thread::migrate(to);
  }
};

int main() {
  weft::thread_cluster c(2);
  c.run([] {
    walker w;
    weft::spawn(weft::migratable, walker{});
    weft::spawn(weft::migratable, w, [&w](walker& ended) { w = ended; });
    weft::spawn(weft::migratable, {.name = "walker"}, w);
    weft::spawn(weft::migratable, {.name = "walker", .priority = 1}, walker{}, [](const walker&) {});
  });
}
