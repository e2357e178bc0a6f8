// SPDX-License-Identifier: BSL-1.0
// Collects Google Benchmark's runs and prints, per problem, medians and ratios.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace weft_bench {

/// A display reporter that shows one progress line per rival, and the table of ratios at the end.
class ratio_table : public benchmark::BenchmarkReporter {
 public:
  ratio_table(std::string kernel, std::string task_name, std::string reference);

  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;

  /// Prints the table, one block per problem.
  void print() const;

  /// Did any rival fail or compute a wrong result?
  bool failed() const { return failed_; }

 private:
  struct row {
    std::string rival;
    unsigned workers = 0;
    std::vector<double> seconds;
    std::map<std::string, std::vector<double>> counters;
    std::string error;
  };
  struct block {
    std::string problem;
    std::vector<row> rows;
  };

  row& find(const std::string& problem, const std::string& rival, unsigned workers);
  void print(const block& b) const;

  std::string kernel_;
  std::string task_name_;
  std::string reference_;
  std::vector<block> blocks_;
  bool failed_ = false;
};

}  // namespace weft_bench
