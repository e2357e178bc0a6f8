// SPDX-License-Identifier: BSL-1.0
// What three who wait for one another do, whether they are threads or bodies.
#pragma once

#include "model/model.hpp"
//
#include <weft/threads/barrier.hpp>
#include <weft/threads/condition.hpp>

namespace model {

/// Two that take turns, and a third that waits for what comes in between.
struct turns {
  weft::condition<int> turn{0};
  data passed{0};
  int seen = 0;

  void take_part(unsigned i) {
    if (i == 2) {
      seen = turn.wait_not_equal(0);
      return;
    }
    for (int k = 0; k < 2; ++k) {
      const int mine = 2 * k + static_cast<int>(i);
      turn.wait_equal(mine);
      require(passed.get() == mine, "what was done before the value was set");
      passed.set(mine + 1);
      turn.set(mine + 1);
    }
  }
  void end() { require(passed.get() == 4 && seen != 0, "everybody has seen his value"); }
};

/// Three that meet twice.
struct meetings {
  weft::barrier all{3};
  data step[3]{data{0}, data{0}, data{0}};

  void take_part(unsigned i) {
    for (int phase = 1; phase <= 2; ++phase) {
      step[i].set(phase);
      all.arrive_and_wait();
      require(step[(i + 1) % 3].get() == phase, "all have arrived");
      all.arrive_and_wait();
    }
  }
};

}  // namespace model
