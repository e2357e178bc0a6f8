// SPDX-License-Identifier: BSL-1.0
// The frontier of an append stream: one thread at a time has it, it passes everything in order and comes to
// the end; what a task adds is passed while it goes on; and a block is not read while its bytes move to a
// file.
#include "model/model.hpp"
//
#include <weft/stream/detail/gate.hpp>
#include <weft/stream/detail/memory.hpp>

namespace {

using weft::stream::gate;
using weft::stream::gate_state;

model::tally taken_over{"frontiers taken over"}, passed_at_once{"gates passed at once"},
    moved_on{"frontiers moved on by a body"}, taken_back{"frontiers taken back"},
    cleared{"dirty gates cleared"}, fetched{"blocks read from files"}, held{"blocks read in memory"};

/// Three tasks append; each ends its gate. The second one places what it has so far if the frontier waits for
/// it.
struct frontier : model::suite<frontier, 3> {
  gate gates[3];
  model::data bytes[3]{model::data{0}, model::data{0}, model::data{0}};
  model::data at{0}, part{0};  // of who has the frontier

  frontier() { gates[0].watch(); }
  void thread(unsigned i) {
    if (i == 1) {
      bytes[1].set(1);
      if (gates[1].state() == gate_state::watched) {
        gates[1].leave();
        ++moved_on.count;
        part.set(part.get() + 1);
        model::require(at.get() == 1, "the frontier waits for this task");
        if (!gates[1].watch()) model::require(false, "nobody else ends it");
      }
    }
    bytes[i].set(static_cast<int>(i) + 2);
    if (gates[i].end(true)) {
      ++taken_over.count;
      advance();
    }
  }
  void advance() {
    for (;;) {
      const auto p = at.get();
      if (p == 3) return;
      if (gates[p].watch()) return;
      ++passed_at_once.count;
      model::require(bytes[p].get() == p + 2, "all that the task has appended");
      at.set(p + 1);
    }
  }
  void after() { model::require(at.get() == 3, "everything was passed"); }
};

/// A task of a stream that may be read adds to its list, and never ends: it waits for what it has added to be
/// passed. Meanwhile somebody comes with the frontier.
struct waiting_for_frontier : model::suite<waiting_for_frontier, 2> {
  gate body;
  weft::base::atomic<int> added{0};
  model::data bytes[2]{model::data{0}, model::data{0}};
  model::data passed{0};  // of who has the frontier

  void thread(unsigned i) {
    if (i == 1) return advance();
    for (int n = 0; n < 2; ++n) {
      bytes[n].set(n + 1);
      added.store(n + 1, weft::base::memory_order_release);
      if (body.set_dirty()) {
        ++taken_back.count;
        body.leave();
        advance();
      }
    }
  }
  void advance() {
    for (;;) {
      const auto p = passed.get();
      if (p < added.load(weft::base::memory_order_acquire)) {
        model::require(bytes[p].get() == p + 1, "all of it");
        passed.set(p + 1);
      } else if (body.watch()) {
        return;
      } else {
        model::require(body.clear_dirty(), "the task goes on");
        ++cleared.count;
      }
    }
  }
  void after() { model::require(passed.get() == 2, "everything was passed"); }
};

/// Who has the frontier reads bytes of a block, twice; its worker moves them to a file meanwhile.
struct spilling : model::suite<spilling, 2> {
  weft::stream::block b;
  model::data memory{7}, file{0};

  void thread(unsigned i) {
    if (i == 0) {
      if (!b.begin_move()) return;
      file.set(memory.get());
      memory.set(-1);  // the memory is used for something else
      b.end_move(true);
      return;
    }
    for (int k = 0; k < 2; ++k) {
      const bool here = b.hold();
      ++(here ? held : fetched).count;
      model::require((here ? memory : file).get() == 7, "the bytes");
      if (here) b.let_go(1);
    }
  }
  void after() {}
};

}  // namespace

int main() {
  using model::operation;
  model::check<frontier>("append_frontier");
  model::check<waiting_for_frontier>("append_frontier, readable");
  model::check<spilling>("append_frontier, spilling");
  model::must_have_happened(
      {&taken_over, &passed_at_once, &moved_on, &taken_back, &cleared, &fetched, &held});
  const auto control = [](const char* what, const char* function, operation o) {
    model::control<frontier>("append_frontier", what, {function, o});
  };
  control("the end of a task publishes nothing", "gate::end", operation::rmw);
  control("the frontier is left without publishing it", "gate::watch", operation::rmw);
  control("a body takes the frontier without order", "gate::state", operation::load);
  model::control<waiting_for_frontier>("append_frontier", "what was added is not published by set_dirty",
                                       {"gate::set_dirty", operation::rmw});
  model::control<waiting_for_frontier>("append_frontier", "who clears sees nothing",
                                       {"gate::clear_dirty", operation::rmw});
  model::control<spilling>("append_frontier", "moved bytes are not published",
                           {"block::end_move", operation::store});
  model::control<spilling>("append_frontier", "the memory is taken while somebody reads",
                           {"block::begin_move", operation::rmw});
  return model::exit_status();
}
