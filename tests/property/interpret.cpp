// SPDX-License-Identifier: BSL-1.0
// The sequential interpreter that serves as oracle.
#include "interpret.hpp"

#include <set>
#include <stdexcept>
#include <utility>

namespace property {
namespace {

class interpreter {
 public:
  interpreter(const program& p, bool planted) : planted_(planted) {
    out_.objects.resize(static_cast<std::size_t>(p.names));
    out_.tasks.assign(static_cast<std::size_t>(p.tasks), runs_never);
    for (std::size_t i = 0; i < p.objects.size(); ++i)
      out_.objects[i] = {p.objects[i].initial, p.objects[i].where != home::empty};
    out_.value = call(p.root);
    if (!thrown_) out_.exception = 0;
  }
  expectation take() { return std::move(out_); }

 private:
  std::uint64_t call(const task& t) {
    const bool late = thrown_;  // an exception of an earlier task is on its way up
    out_.tasks[static_cast<std::size_t>(t.id)] = !late       ? runs_once
                                                 : barred(t) ? runs_never
                                                             : runs_at_most_once;
    std::uint64_t acc = mix(0, static_cast<std::uint64_t>(t.id));
    for (const step& s : t.steps) {
      switch (s.what) {
        case action::make:
          at(s.object) = {s.constant, s.constant != 0};
          break;
        case action::get:
          acc = mix(acc, read(s.object));
          break;
        case action::set:
          at(s.object) = {mix(acc, s.constant), !thrown_};
          break;
        case action::mod:
          at(s.object) = {mix(read(s.object), acc ^ s.constant ^ (planted_ && s.constant % 3 == 0)),
                          !thrown_};
          acc = mix(acc, at(s.object).value);
          break;
        case action::fork:
          fork(s.child.front());
          break;
        case action::sync:
        case action::sync_in_handler:
          if (thrown_ && !late) return leave(t, acc);
          if (s.what == action::sync_in_handler) acc = mix(acc, s.constant);
          break;
        case action::catching_sync:
          if (!thrown_ || late) break;
          acc = mix(acc, out_.exception);
          thrown_ = false;
          ++out_.caught;
          break;
        case action::fail:
          if (!thrown_) {
            out_.exception = s.constant;
            broken_.clear();
            for (const access& a : t.accesses)
              if (a.how != mode::read) broken_.insert(a.object);
          }
          thrown_ = true;
          return leave(t, acc);
        case action::spin:
          break;
      }
    }
    return thrown_ && !late ? leave(t, acc) : acc;
  }

  void fork(const task& c) {
    const bool late = thrown_;
    const std::uint64_t result = call(c);
    if (c.result >= 0) at(c.result) = {result, !thrown_};
    for (const access& a : c.accesses) {
      if (late && a.how != mode::read) at(a.object).known = false;
      if (late && a.how == mode::write) broken_.erase(a.object);  // its readers wait for this version only
    }
  }

  std::uint64_t leave(const task& t, std::uint64_t acc) {  // a value that was to be written may be missing
    for (const access& a : t.accesses)
      if (a.how == mode::write) at(a.object).known = false;
    return acc;
  }

  bool barred(
      const task& t) const {  // it reads what the thrower should have written, so it cannot have started
    for (const access& a : t.accesses)
      if (a.how != mode::write && broken_.contains(a.object)) return true;
    return false;
  }

  std::uint64_t read(int object) {
    if (!thrown_ && !at(object).known) throw std::logic_error("a generated program reads an unknown value");
    return at(object).value;
  }

  cell& at(int object) { return out_.objects[static_cast<std::size_t>(object)]; }

  bool planted_, thrown_ = false;
  std::set<int> broken_{};  // what the thrower held for writing
  expectation out_{};
};

}  // namespace

expectation interpret(const program& p, bool planted) { return interpreter(p, planted).take(); }

}  // namespace property
