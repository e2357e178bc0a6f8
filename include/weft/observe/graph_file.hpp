// SPDX-License-Identifier: BSL-1.0
// graph_file: the tasks of one run and what each waits for, as a file for Graphviz or as JSON.
#pragma once

#include <weft/io/failure.hpp>
#include <weft/observe/json_text.hpp>
#include <weft/observe/object_history.hpp>
#include <weft/task/run_recorder.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <compare>
#include <cstdio>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::observe {

/// Options of graph_file.
struct graph_options {
  std::size_t most_tasks = 2000;  ///< beyond so many tasks, the file has one node for all of a name
};

/// Records one run as a graph: a node for each task, an edge to each task that must wait for it, with the
/// access and the object. The last run is written when the object ends, or by close(): as JSON if the path
/// ends in ".json", else in the language of Graphviz. Where the record lacks memory, the run throws
/// std::bad_alloc, at the next fork or at its end, and the graph is empty. *Thread safety*: one thread at a
/// time.
/// *Example*:
/// @code
/// weft::observe::graph_file dot("run.dot");
/// rt.run({.record = &dot}, program);
/// dot.close();
/// @endcode
class graph_file final : public sched::run_recorder {
 public:
  /// *Throws*: std::system_error with the path if it cannot be written.
  explicit graph_file(std::string path, const graph_options& options = {})
      : path_(std::move(path)), options_(options) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) io::fail(errno, "write the graph", path_);
  }
  /// Writes the file if close() was not called. What fails is said on the standard error stream.
  ~graph_file() {
    try {
      close();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
  }

  /// Writes the file. Does nothing the second time. *Throws*: std::system_error with the path.
  void close() {
    if (file_ < 0) return;
    const int file = std::exchange(file_, -1);
    int error = 0;
    {
      json_text out(file);
      if (path_.ends_with(".json"))
        write_json_(out);
      else
        write_dot_(out);
      error = out.end();
    }
    if (::close(file) != 0 && error == 0) error = errno;
    if (error != 0) io::fail(error, "write the graph", path_);
  }
  /// How many tasks the last run had, the first one not counted; 0 where its record lacked memory.
  std::size_t tasks() const noexcept { return count_; }
  /// How many edges, where a task that waits for another one for several objects counts so often.
  std::size_t edges() const noexcept { return edge_count_; }

 private:
  void begin_run() override {
    forget_graph_();
    failed_ = false;
    history_.clear();
    accesses_.clear();
    open_.assign(1, {no_task, 0, 0});
  }
  void begin_task(const char* name) override {
    if (failed_) throw std::bad_alloc();
    or_fail_([&] {
      const std::uint32_t number = number_(name != nullptr ? name : "task");
      ++types_[number].tasks;
      const node made{static_cast<std::uint32_t>(count_++), number, open_.back().task.number};
      if (count_ <= options_.most_tasks) tasks_.push_back(made);
      open_.push_back({made, accesses_.size(), UINT32_MAX});
    });
  }
  void add_access(const sched::access& a, sched::recorded_use use) override {
    or_fail_([&] {
      const known_access known = history_.meet(a);
      if (use == sched::recorded_use::weak || known.is_empty()) return;
      if (use == sched::recorded_use::own) accesses_.push_back(known);
      const std::uint32_t object = objects_.try_emplace(a.object, object_count_).first->second;
      if (object == object_count_) ++object_count_;
      const node here = open_.back().task;
      history_.each_before(known, [&](const auto& group) {
        for (const node& before : group.members) {
          ++edge_count_;
          ++summary_[{before.type, here.type, a.mode}];
          if (count_ <= options_.most_tasks) edges_.push_back({before.number, here.number, a.mode, object});
        }
      });
    });
  }
  void begin_body() override { open_.back().first_object = history_.size(); }
  void end_body() noexcept override {
    const body ended = open_.back();
    open_.pop_back();
    history_.forget_from(ended.first_object);
    try {
      for (std::size_t i = ended.first_access; i < accesses_.size(); ++i)
        history_.join(accesses_[i]).push_back(ended.task);
    } catch (const std::bad_alloc&) {
      failed_ = true;  // said at the next task, or at the end
    }
    accesses_.resize(ended.first_access);
  }
  void end_object(const void* object) noexcept override {
    history_.end(object, open_.back().first_object);
    objects_.erase(object);
  }
  void sync() noexcept override {}
  void end_run() override {
    history_.clear();
    if (!failed_) return;
    forget_graph_();
    throw std::bad_alloc();
  }

  struct node {
    std::uint32_t number, type, parent;
  };
  struct body {
    node task;
    std::size_t first_access;    ///< of its own among those of all that run
    std::uint32_t first_object;  ///< as in basic_work_and_span
  };
  struct edge {
    std::uint32_t from, to;
    sched::access_mode mode;
    std::uint32_t object;
  };
  struct type {
    std::string name;
    std::size_t tasks = 0;
  };
  struct type_edge {
    std::uint32_t from, to;
    sched::access_mode mode;
    auto operator<=>(const type_edge&) const = default;
  };
  static constexpr node no_task{UINT32_MAX, UINT32_MAX, UINT32_MAX};

  /// Calls `f`. *Throws*: what that throws, which the record does not outlive.
  template <class F>
  void or_fail_(F f) {
    try {
      f();
    } catch (...) {
      failed_ = true;
      throw;
    }
  }
  void forget_graph_() noexcept {
    tasks_.clear();
    edges_.clear();
    types_.clear();
    numbers_.clear();
    summary_.clear();
    objects_.clear();
    object_count_ = 0;
    count_ = edge_count_ = 0;
  }
  /// The type with this name.
  std::uint32_t number_(std::string_view text) {
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) return found->second;
    const auto number = static_cast<std::uint32_t>(types_.size());
    types_.push_back({std::string(text)});
    numbers_.emplace(text, number);
    return number;
  }

  static std::string_view name_(sched::access_mode m) noexcept {
    constexpr std::array<std::string_view, 5> names{"read", "write", "update", "reduce", "commute"};
    return names[static_cast<std::size_t>(m)];
  }
  bool large_() const noexcept { return count_ > options_.most_tasks; }
  /// Part of a string of Graphviz: only quotation marks and backslashes mean something there.
  static void write_text_(json_text& out, std::string_view text) {
    while (!text.empty()) {
      const std::size_t n = utf8_length(text);
      const auto c = static_cast<unsigned char>(text.front());
      if (n == 0 || c < 0x20 || c == 0x7f)
        out.raw("?");
      else if (c == '"' || c == '\\')
        out.raw("\\").raw(text.substr(0, 1));
      else
        out.raw(text.substr(0, n));
      text.remove_prefix(n == 0 ? 1 : n);
    }
  }
  void write_dot_(json_text& out) const {
    out.raw(
        "digraph run {\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", "
        "fontsize=9];\n");
    if (large_()) {
      for (std::size_t i = 0; i < types_.size(); ++i) {
        out.raw("  n").number(i).raw(" [label=\"");
        write_text_(out, types_[i].name);
        out.raw(" (").number(types_[i].tasks).raw(" tasks)\"];\n");
      }
      for (const auto& [e, n] : summary_)
        out.raw("  n")
            .number(e.from)
            .raw(" -> n")
            .number(e.to)
            .raw(" [label=\"")
            .raw(name_(e.mode))
            .raw(", ")
            .number(n)
            .raw("\"];\n");
    } else {
      for (const node& t : tasks_) {
        out.raw("  t").number(t.number).raw(" [label=\"");
        write_text_(out, types_[t.type].name);
        out.raw("\"];\n");
      }
      for (const edge& e : edges_)
        out.raw("  t")
            .number(e.from)
            .raw(" -> t")
            .number(e.to)
            .raw(" [label=\"")
            .raw(name_(e.mode))
            .raw(" x")
            .number(e.object)
            .raw("\"];\n");
    }
    out.raw("}\n");
  }
  void write_json_(json_text& out) const {
    const char* separator = "\n";
    const auto next = [&] { out.raw(std::exchange(separator, ",\n")); };
    out.raw("{\"tasks\":[");
    if (large_()) {
      for (std::size_t i = 0; i < types_.size(); ++i) {
        next();
        out.raw("{\"id\":")
            .number(i)
            .raw(",\"name\":")
            .string(types_[i].name)
            .raw(",\"count\":")
            .number(types_[i].tasks)
            .raw("}");
      }
      out.raw("],\"edges\":[");
      separator = "\n";
      for (const auto& [e, n] : summary_) {
        next();
        out.raw("{\"from\":")
            .number(e.from)
            .raw(",\"to\":")
            .number(e.to)
            .raw(",\"mode\":\"")
            .raw(name_(e.mode))
            .raw("\",\"count\":")
            .number(n)
            .raw("}");
      }
    } else {
      for (const node& t : tasks_) {
        next();
        out.raw("{\"id\":")
            .number(t.number)
            .raw(",\"name\":")
            .string(types_[t.type].name)
            .raw(",\"parent\":");
        if (t.parent == UINT32_MAX)
          out.raw("null}");
        else
          out.number(t.parent).raw("}");
      }
      out.raw("],\"edges\":[");
      separator = "\n";
      for (const edge& e : edges_) {
        next();
        out.raw("{\"from\":")
            .number(e.from)
            .raw(",\"to\":")
            .number(e.to)
            .raw(",\"mode\":\"")
            .raw(name_(e.mode))
            .raw("\",\"object\":")
            .number(e.object)
            .raw("}");
      }
    }
    out.raw("\n]}\n");
  }

  std::string path_;
  graph_options options_;
  int file_ = -1;
  object_history<std::vector<node>> history_;
  std::vector<body> open_;              ///< those that run, the innermost last
  std::vector<known_access> accesses_;  ///< of their tasks
  std::vector<node> tasks_;
  std::vector<edge> edges_;
  std::vector<type> types_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::map<type_edge, std::size_t> summary_;
  std::map<const void*, std::uint32_t> objects_;  ///< the numbers of those that exist
  std::uint32_t object_count_ = 0;
  std::size_t count_ = 0, edge_count_ = 0;
  bool failed_ = false;  ///< there was no memory for something: the record is of no use
};

}  // namespace weft::inline WEFT_ABI::observe
