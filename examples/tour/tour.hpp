// SPDX-License-Identifier: BSL-1.0
// What the stations of the tour share: how one is timed, and the table that they fill.
#pragma once

#include <weft/weft.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tour {

/// One line of the table.
struct row {
  std::string problem;
  unsigned workers = 0;
  double seconds = 0;
  double serial_seconds = 0;
  std::uint64_t tasks = 0;  ///< by the problem's own formula: a task run inside fork leaves no trace to count
  std::uint64_t steals = 0;  ///< in the run whose time is given
  bool equal = false;        ///< is every result that of the serial program, bit for bit?
};

/// Problem sizes.
enum class size { full, quick };

/// The table, printed at the end.
class report {
 public:
  void add(row r) { rows_.push_back(std::move(r)); }
  /// A line below the table about something that was compared beside the runs.
  void note(std::string text, bool holds);
  void print() const;
  bool all_equal() const;

 private:
  struct remark {
    std::string text;
    bool holds;
  };
  std::vector<row> rows_;
  std::vector<remark> remarks_;
};

/// One problem: how to solve it serially, and on a runtime.
struct problem {
  std::string name;
  std::uint64_t tasks = 0;
  std::function<void()> prepare = [] {};  ///< untimed, before each of the following
  std::function<void()> serial;
  std::function<void(weft::runtime&)> parallel;
  std::function<bool()> equal;  ///< compares what the two have left behind
};

/// Runs the problem serially, with one worker and with all of them, each several times; takes medians.
void visit(const problem& p, report& r);

/// Says on stderr what takes its time now.
void progress(const std::string& text);

void fibonacci(size s, report& r);
void queens(size s, report& r);
void kernel23(size s, report& r);
void cholesky(size s, report& r);

}  // namespace tour
