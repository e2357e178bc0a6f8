// SPDX-License-Identifier: BSL-1.0
// One walk through a program in serial order: it computes what the program gives, and meanwhile drops what is
// illegal or throws.
#pragma once

#include "interpret.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace property {

class walk {
 public:
  walk(program& p, bool repair, planted fault);
  bool changed() const { return changed_; }
  expectation take() { return std::move(out_); }

 private:
  /// What a body can name: a right on the cells [begin, begin + count).
  struct held {
    grade right;
    int operation;
    bool weak, array, plain;
    int begin, count;
  };
  using scope = std::map<int, held>;

  struct range {
    int begin, end;
    bool reads;
  };

  struct body {
    task& t;
    scope names;
    bool late;                     // an exception of an earlier task was on its way up when the body began
    std::vector<range> pending{};  // what children were given since the last sync
    std::uint64_t acc;
    bool failed = false;  // an exception of a child waits for the next sync
    /// Whether the children that it forks run if it does.
    bool sure() const;
  };

  struct place : cell {
    bool filled = false;  // has a value at this point of the serial run
    bool safe = false;    // has one even if tasks that come after an exception do not run
  };

  // interpret.cpp: what steps do
  std::uint64_t call(task& t, scope names);
  bool perform(body& b, step& s);
  void fork(body& b, task& c);
  bool barred(const body& b) const;
  void put(int at, std::uint64_t value, bool known);

  // legalise.cpp: what the library allows
  bool legal(const body& b, step& s);
  bool legal_fork(const body& b, task& c);
  bool legal_target(const body& b, const target& g, const properties& p) const;
  static bool meet(const range& x, const range& y);
  /// Gives a value to what the task holds for writing and has not given one.
  void complete(body& b);

  place& at(int i) { return cells_[static_cast<std::size_t>(i)]; }
  const place& at(int i) const { return cells_[static_cast<std::size_t>(i)]; }
  void forget(int begin, int count) {
    for (int i = begin; i < begin + count; ++i) at(i).known = false;
  }

  bool repair_;
  planted fault_;
  bool changed_ = false;
  std::vector<bool> called_{};  // by id of the task
  bool left_ = false;           // the last call ended with an exception
  bool thrown_ = false;         // an exception is on its way up
  std::vector<place> cells_{};
  std::set<int> broken_{};  // cells that the thrower held for writing: their readers cannot start
  std::set<int> ended_{};   // tasks that an exception has left in one of their calls
  expectation out_{};
};

}  // namespace property
