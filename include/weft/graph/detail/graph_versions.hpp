// SPDX-License-Identifier: BSL-1.0
// Renaming: a task that gives an object a new value gets a version of it for its own, and so need not wait
// for those that still use the old value.
#pragma once

#include <weft/graph/graph_node.hpp>
#include <weft/memory/arena.hpp>

#include <new>
#include <type_traits>
#include <utility>

namespace weft::inline WEFT_ABI::sched {

/// The versions of all objects of a graph. Their memory is kept and used again until all tasks visited so far
/// have ended; then the last values are moved to the objects' own memory. *Thread safety*: under the lock of
/// the graph, except write_back().
class graph_versions {
 public:
  graph_versions() = default;
  graph_versions(const graph_versions&) = delete;
  graph_versions& operator=(const graph_versions&) = delete;
  ~graph_versions() { free(); }

  /// Begins to count. `most`: how many versions an object may have; 1: nothing is renamed.
  void begin(unsigned most) noexcept {
    most_ = most;
    renames_ = 0;
  }
  std::uint64_t renames() const noexcept { return renames_; }
  /// Whether values may be elsewhere than where their objects are.
  bool any() const noexcept { return objects_ != nullptr; }

  /// Gives the task of `n`, with access `a`, a version for the new value, if there may be one more, or the
  /// oldest is no longer in use. `users`: ends when nobody needs the current one. *Returns*: what the task
  /// has to wait for. *Throws*: std::bad_alloc.
  graph_node* renew(graph_entry& e, const access& a, graph_node& n, graph_node* users, arena& memory) {
    if (most_ < 2) return users;
    const auto make = [&memory](const auto& value) {
      return ::new (memory.allocate(sizeof(value))) std::remove_cvref_t<decltype(value)>(value);
    };
    if (e.renamed == nullptr) {
      auto* const r = make(renamed_object{
          .home = {.place = const_cast<void*>(a.object), .kind = a.kind, .made = true}, .next = objects_});
      r->home.next = e.version = &r->home;
      objects_ = e.renamed = r;
    }
    graph_version& current = *e.version;
    graph_version* chosen = nullptr;
    unsigned count = 1;
    for (graph_version* v = current.next; v != &current; v = v->next, ++count)
      if (chosen == nullptr || sooner(*v, *chosen)) chosen = v;
    auto* const renaming = make(graph_renaming{nullptr, &n, e.renamed->newest});
    if ((chosen == nullptr || !chosen->users->ended()) && count < most_) {
      auto* const added = make(graph_version{.place = nullptr, .kind = a.kind, .next = current.next});
      added->place = ::operator new(a.kind->size, std::align_val_t(a.kind->alignment), std::nothrow);
      if (added->place != nullptr) chosen = current.next = added;
    }
    if (chosen == nullptr) return users;  // no memory for a version: then it waits
    renaming->version = chosen;
    e.renamed->newest = renaming;
    current.users = users;
    chosen->writer = &n;
    e.version = chosen;
    ++renames_;
    return std::exchange(chosen->users, nullptr);
  }
  /// Moves the values that the serial program would have left to where their objects are. *Requires*: all
  /// tasks have ended, nobody visits further ones. *Thread safety*: the owner of the strand.
  void write_back(std::uint32_t failed_at) noexcept {
    for (renamed_object* o = objects_; o != nullptr; o = o->next) {
      graph_renaming* last = o->newest;
      for (; last != nullptr; last = last->before) {
        if (!last->writer->ran || last->writer->dropped) continue;
        if (last->writer->index <= failed_at && !last->version->overwritten) break;
        last->version->overwritten = true;
      }
      if (last != nullptr && last->version != &o->home)
        o->home.kind->move(last->version->place, o->home.place);
    }
  }
  /// Frees all versions.
  void free() noexcept {
    for (renamed_object* o = std::exchange(objects_, nullptr); o != nullptr; o = o->next)
      for (graph_version* v = o->home.next; v != &o->home; v = v->next) {
        if (v->made) v->kind->destroy(v->place);
        ::operator delete(v->place, std::align_val_t(v->kind->alignment));
      }
  }

 private:
  /// Whether `a` is, or probably will be, out of use before `b`. *Requires*: neither is the current one.
  static bool sooner(const graph_version& a, const graph_version& b) noexcept {
    if (const bool ended = a.users->ended(); ended != b.users->ended()) return ended;
    const auto age = [](const graph_version& v) { return v.writer != nullptr ? v.writer->index : 0; };
    return age(a) < age(b);  // indices begin at 1
  }

  renamed_object* objects_ = nullptr;
  unsigned most_ = 1;
  std::uint64_t renames_ = 0;
};

}  // namespace weft::inline WEFT_ABI::sched
