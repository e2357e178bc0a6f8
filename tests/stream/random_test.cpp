// SPDX-License-Identifier: BSL-1.0
// Random programs that append to a stream, against the serial program: nesting, throws, sync, hooks,
// suspension.
#include "stream/scratch.hpp"
#include "support/catch.hpp"
#include "support/environment.hpp"
#include "support/figure.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// One statement of a task's body.
struct statement {
  enum class kind { write, text, hook, append_child, other_child, sync, guarded, fail, nap, run };
  kind what;
  std::string bytes;
  std::vector<statement> body;  // of the child, or of the guarded part
};
using program = std::vector<statement>;

/// Makes programs. `can_append`: the task has the right; `depth`: how deep children may nest.
class generator {
 public:
  explicit generator(std::uint64_t seed, bool throws) : random_(seed), throws_(throws) {}
  program make(int depth, bool can_append, bool may_guard = true) {
    program p;
    const int n = std::uniform_int_distribution(0, 5)(random_);
    for (int i = 0; i < n; ++i) {
      const int d = std::uniform_int_distribution(0, 99)(random_);
      using k = statement::kind;
      if (d < 30 && can_append) {
        p.push_back({d < 22 ? k::write : d < 26 ? k::text : k::hook, bytes_(), {}});
      } else if (d < 62 && depth > 0 && can_append) {
        p.push_back({k::append_child, {}, make(depth - 1, true)});
      } else if (d < 80 && depth > 0) {
        p.push_back({k::other_child, {}, make(depth - 1, false)});
      } else if (d < 84) {
        p.push_back({k::sync, {}, {}});
      } else if (d < 90 && may_guard && throws_) {
        p.push_back({k::guarded, {}, make(depth, can_append, false)});
      } else if (d < 93 && throws_) {
        p.push_back({k::fail, {}, {}});
      } else if (d < 96 && can_append && depth > 0) {
        p.push_back({k::run, {}, make(depth - 1, true)});
      } else {
        p.push_back({k::nap, {}, {}});
      }
    }
    return p;
  }

 private:
  std::string bytes_() {
    const int size = std::uniform_int_distribution(0, 19)(random_) == 0 ? 3000 : 6;
    return std::to_string(next_++) +
           std::string(std::size_t(std::uniform_int_distribution(0, size)(random_)), '.') + ' ';
  }
  std::mt19937_64 random_;
  bool throws_;
  int next_ = 0;
};

struct planned : std::runtime_error {
  planned() : std::runtime_error("planned") {}
};

/// The serial program: every fork a call.
void call(const program& p, std::string& out) {
  for (const statement& s : p) switch (s.what) {
      case statement::kind::write:
      case statement::kind::text:
      case statement::kind::hook:
        out += s.bytes;
        break;
      case statement::kind::append_child:
      case statement::kind::run:
      case statement::kind::other_child:
        call(s.body, out);
        break;
      case statement::kind::guarded:
        try {
          call(s.body, out);
        } catch (const planned&) {
        }
        break;
      case statement::kind::fail:
        throw planned();
      case statement::kind::sync:
      case statement::kind::nap:
        break;
    }
}

std::atomic<std::uint64_t> moves{0};

void nap() {
  // A wait for nothing in particular: the strand is put aside and may go on elsewhere.
  const auto before = std::this_thread::get_id();
  std::this_thread::yield();
  weft::sync();
  if (std::this_thread::get_id() != before) moves.fetch_add(1, std::memory_order_relaxed);
}

/// Children that a body left behind when it threw may have thrown, too; the serial program has not called
/// them.
void wait_in_vain() {
  try {
    weft::sync();
  } catch (const planned&) {
  }
}

void without(const program& p, weft::runtime& rt);

void with(const program& p, weft::runtime& rt, weft::append out) {
  for (const statement& s : p) switch (s.what) {
      case statement::kind::write:
        out.write(s.bytes);
        break;
      case statement::kind::text:
        out.stream() << s.bytes;
        break;
      case statement::kind::hook:
        out.finalise([bytes = s.bytes](weft::append_tail& tail) { tail.write(bytes); });
        break;
      case statement::kind::append_child:
        weft::fork(with, std::cref(s.body), std::ref(rt), out);
        break;
      case statement::kind::other_child:
        weft::fork(without, std::cref(s.body), std::ref(rt));
        break;
      case statement::kind::run:
        rt.run(with, std::cref(s.body), std::ref(rt), out);
        break;
      case statement::kind::sync:
        weft::sync();
        break;
      case statement::kind::guarded:
        weft::sync();
        try {
          with(s.body, rt, out);
          weft::sync();
        } catch (const planned&) {
          wait_in_vain();
        }
        break;
      case statement::kind::fail:
        throw planned();
      case statement::kind::nap:
        nap();
        break;
    }
}

void without(const program& p, weft::runtime& rt) {
  for (const statement& s : p) switch (s.what) {
      case statement::kind::other_child:
        weft::fork(without, std::cref(s.body), std::ref(rt));
        break;
      case statement::kind::sync:
        weft::sync();
        break;
      case statement::kind::guarded:
        weft::sync();
        try {
          without(s.body, rt);
          weft::sync();
        } catch (const planned&) {
          wait_in_vain();
        }
        break;
      case statement::kind::fail:
        throw planned();
      default:
        nap();
        break;
    }
}

}  // namespace

TEST_CASE("random programs append the bytes of the serial program") {
  const std::uint64_t first = weft_test::seed();
  const int programs = weft_test::long_run() ? 20000 : 300;
  const scratch_directory dir;
  std::uint64_t steals = 0, failed = 0, bytes = 0, programs_run = 0;
  for (const unsigned workers : {1u, 2u, 3u, 4u, 8u, 16u}) {
    weft::runtime rt({.workers = workers});
    for (int i = 0; i < programs; ++i) {
      const std::uint64_t seed = first + std::uint64_t(i);
      INFO("seed " << seed << ", " << workers << " workers");
      const program p = generator(seed, i % 2 == 1).make(5, true);
      std::string expected = "begin ";
      bool throws = false;
      try {
        call(p, expected);
      } catch (const planned&) {
        throws = true;
      }
      expected += "end";
      weft::append_file file(dir / "out", {.overwrite = true, .buffer = 4096, .sync = false});
      file.write("begin ");
      bool thrown = false;
      try {
        rt.run(with, std::cref(p), std::ref(rt), file);
      } catch (const planned&) {
        thrown = true;
      }
      file.write("end");
      file.close();
      CHECK(thrown == throws);
      REQUIRE(read_file(dir / "out") == expected);
      failed += throws;
      bytes += expected.size();
      ++programs_run;
    }
    steals += rt.counters().steals;
  }
  CHECK(steals > 0);
  CHECK(failed > 0);
  weft_test::figure("stream_programs", programs_run);
}
