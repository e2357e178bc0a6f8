// SPDX-License-Identifier: BSL-1.0
// Bodies in a model: each has a strand and a stack of its own, and may wait while its worker goes on with
// others.
#pragma once

#include "model/machine.hpp"
//
#include <weft/blocking/definitions.hpp>

namespace model {

/// A model of so many bodies on so many workers, each the first task of a run. It has `body(unsigned)`, and
/// may have `outside()`, which a thread that is no worker calls when all have been submitted, and `stopped`:
/// how many of the first ones may be dropped.
template <class Model, unsigned workers, unsigned bodies>
struct of_bodies : suite<Model, static_cast<int>(workers) + 1> {
  static constexpr unsigned stopped = 0;

  machine all{workers};
  run_state run[bodies];

  void thread(unsigned i) {
    if (i != 0) return all.live(all.at(i - 1));
    for (unsigned b = 0; b < bodies; ++b)
      all.e.submit(all.make_run(run[b], this, &enter, b < Model::stopped));
    static_cast<Model*>(this)->outside();
    for (run_state& r : run) r.finished.block();
    all.close();
  }
  void outside() {}

 private:
  static void enter(void* m, strand& s, task&) {
    auto* const self = static_cast<of_bodies*>(m);
    // Relaxed: constant while it runs.
    const run_state* const mine = s.run.load(weft::base::memory_order_relaxed);
    static_cast<Model*>(self)->body(static_cast<unsigned>(mine - self->run));
  }
};

}  // namespace model
