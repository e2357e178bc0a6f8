// SPDX-License-Identifier: BSL-1.0
// Sleep and wake: no wake-up is lost between sleepers on an event count and those who publish work.
#include "model/model.hpp"
//
#include <weft/base/event_count.hpp>

namespace {

using namespace weft::base;

/// Work is published as the owner of a strand does it; nobody else looks for it than those who may sleep.
template <int sleepers>
struct sleep_wake : model::suite<sleep_wake<sleepers>, 1 + sleepers> {
  event_count bell;
  atomic<unsigned> published{0};
  model::data work;
  std::uint64_t taken = 0;

  void thread(unsigned i) {
    if (i == 0) {
      work.set(17);
      owner_store(published, 1u);
      if (bell.any_waiting()) bell.notify_one();
      return;
    }
    for (bool found = false; !found;) {
      const std::uint32_t key = bell.prepare();
      found = published.load(memory_order_acquire) != 0;
      if (found) {
        bell.cancel();
        model::require(work.get() == 17, "the work is there");
      } else {
        bell.wait(key);
        // As in find_work: whoever was woken wakes the next, for there may be more.
        if (published.load(memory_order_relaxed) != 0 && bell.any_waiting()) bell.notify_one();
      }
    }
    ++taken;
  }
  void after() { model::require(taken == sleepers, "all have found it"); }
};

}  // namespace

int main() {
  using model::operation;
  model::check_all<sleep_wake<1>>("sleep_wake, one sleeper");
  model::control<sleep_wake<1>>("sleep_wake, one sleeper", "sleepers do not fence",
                                {"heavy_fence", operation::fence}, rl::sched_full);
  model::check<sleep_wake<2>>("sleep_wake");
  const auto control = [](const char* what, const char* function, operation o) {
    model::control<sleep_wake<2>>("sleep_wake", what, {function, o});
  };
  control("sleepers do not fence", "heavy_fence", operation::fence);
  control("work is published without order", "owner_store", operation::store);
#if !WEFT_ASYMMETRIC
  control("sleepers are looked for without order", "owner_load", operation::load);
#endif
  return model::exit_status();
}
