// SPDX-License-Identifier: BSL-1.0
// The description of a runtime in words: workers, running tasks, waiting strands and what each waits for.
#pragma once

#include <weft/inspect/detail/strand_view.hpp>
#include <weft/sched/runtime_registry.hpp>

#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace weft::inline WEFT_ABI::sched {

/// Where a description goes. Knows no allocation, so that it serves a signal handler, too.
class description_sink {
 public:
  using function = void (*)(void* to, const char* text, std::size_t length);
  description_sink(function put, void* to) noexcept : put_(put), to_(to) {}

  description_sink& operator<<(std::string_view text) {
    put_(to_, text.data(), text.size());
    return *this;
  }
  description_sink& operator<<(std::size_t number) {
    char digits[24];
    char* const end = digits + sizeof digits;
    char* first = end;
    do *--first = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    return *this << std::string_view(first, static_cast<std::size_t>(end - first));
  }

 private:
  function put_;
  void* to_;
};

/// Whether the strand of the first view waits for that of the second.
inline bool waits_for(const strand_view& a, const strand_view& b) noexcept {
  using is = strand_view::state;
  if (a.is != is::waiting || a.ended || a.external || b.is == is::gone || b.is == is::unseen) return false;
  if (a.holder != nullptr) return b.who == a.holder;
  if (a.awaits.happens != nullptr)
    return b.run != nullptr && &b.run->finished == a.awaits.happens && b.victim == nullptr;
  if (a.awaits.large != nullptr)  // for a task of it, or one that was stolen before it was a graph
    return b.victim == a.who && (b.source_graph == a.awaits.large || b.source_graph == nullptr);
  return b.victim == a.who && b.source_graph == nullptr && b.root == a.awaits.task;
}

/// Follows the waits from `start`. *Returns*: a view on a cycle, whose predecessors are in `parent`; or the
/// number of views. *Cost*: that number squared, for all starts together.
inline std::size_t find_cycle(std::span<strand_view> all, std::size_t start) noexcept {
  constexpr std::uint8_t fresh = 0, on_the_way = 1, left = 2;
  if (all[start].mark != fresh) return all.size();
  all[start].mark = on_the_way;
  for (std::size_t at = start;;) {
    std::size_t& to = all[at].next;
    while (to < all.size() && (all[to].mark == left || !waits_for(all[at], all[to]))) ++to;
    if (to == all.size()) {
      all[at].mark = left;
      if (at == start) return all.size();
      at = all[at].parent;
      continue;
    }
    const std::size_t next = to++;
    if (all[next].mark == on_the_way) {
      all[next].parent = at;
      return next;
    }
    all[next].mark = on_the_way;
    all[next].parent = at;
    at = next;
  }
}

/// Puts views into words.
class describer {
 public:
  using is = strand_view::state;
  static constexpr std::size_t most_strands = 100;

  /// *Requires*: registered_engine::mutex is held.
  describer(description_sink out, strand_views& views) noexcept : out_(out), views_(views) {}

  void describe(registered_engine& which) {
    here_ = &which.home();
    out_ << "runtime " << which.number() << " with " << here_->workers.size()
         << (here_->workers.size() == 1 ? " worker\n" : " workers\n");
    for (std::size_t i = 0; i < here_->workers.size(); ++i) worker_line(i);
    std::size_t shown = 0;
    for (const strand_view& v : views_.all())
      if (v.home == here_ && v.is != is::running && v.is != is::gone && ++shown <= most_strands)
        strand_line(v);
    if (shown > most_strands) out_ << "  and " << shown - most_strands << " more strands\n";
    if (views_.left_out() != 0) out_ << "  not looked at: " << views_.left_out() << " strands\n";
    if (views_.locked()) out_ << "  some lists of strands are locked and missing here\n";
    cycle_line();
  }

 private:
  void worker_line(std::size_t i) {
    const worker& w = *here_->workers[i];
    out_ << "  worker " << i;
    const strand* const s = w.executed();
    for (const strand_view& v : views_.all())
      if (s != nullptr && v.who == s && v.is == is::running) {
        out_ << " runs ";
        names(v);
        out_ << " (strand " << v.number + 1 << ")\n";
        return;
      }
    out_ << (s != nullptr ? " goes from one strand to another\n" : w.asleep() ? " sleeps\n" : " searches\n");
  }

  void strand_line(const strand_view& v) {
    out_ << "  strand " << v.number + 1;
    if (v.is == is::unseen) {
      out_ << " cannot be looked at: its door is locked\n";
      return;
    }
    out_ << (v.is == is::submitted ? " is to begin " : " in ");
    names(v);
    if (v.is == is::waiting) {
      out_ << " waits for ";
      if (v.waits_in_words != nullptr) {
        out_ << v.waits_in_words;
        if (v.holder != nullptr) executors(v);
      } else if (v.awaits.happens != nullptr)
        awaited_run(v);
      else if (v.awaits.large != nullptr)
        awaited_graph(v);
      else if (v.external)
        out_ << "an event outside the runtime, by which '" << v.in[innermost(v)].text << "' is held open";
      else
        awaited_task(v);
      if (v.ended) out_ << "; that has happened, and it is about to go on";
    }
    out_ << "\n";
  }

  void awaited_task(const strand_view& v) {
    out_ << "'" << v.awaited.text << "'";
    executors(v);
  }
  void awaited_graph(const strand_view& v) {
    out_ << "a task that is ready, of " << v.unended << " unfinished ones that it has forked";
    executors(v);
  }
  void awaited_run(const strand_view& v) {
    out_ << "a run of ";
    const strand_view* root = nullptr;
    for (const strand_view& w : views_.all())
      if (waits_for(v, w)) root = &w;
    if (root == nullptr) {
      out_ << "a runtime, which begins or ends just now";
      return;
    }
    if (root->home == here_)
      out_ << "this runtime";
    else
      out_ << "runtime " << number_of(*root->home);
    executors(v);
  }
  /// Who is at what the strand waits for.
  void executors(const strand_view& v) {
    constexpr std::size_t most = 8;
    std::size_t count = 0;
    for (const strand_view& w : views_.all()) {
      if (!waits_for(v, w)) continue;
      if (++count > most) continue;
      out_ << (count == 1 ? ": " : ", ");
      place(w);
    }
    if (count > most) out_ << ", and " << count - most << " more";
  }
  /// What has become of a strand for which somebody waits.
  void place(const strand_view& w) {
    strand_name(w);
    if (w.is == is::waiting) out_ << " waits";
    if (w.is == is::submitted) out_ << " is to begin";
    if (w.is != is::running) return;
    for (std::size_t i = 0; i < w.home->workers.size(); ++i)
      if (w.home->workers[i]->executed() == w.who) {
        out_ << " on worker " << i;
        return;
      }
    out_ << " runs";
  }

  void cycle_line() {
    const auto all = views_.all();
    for (strand_view& v : all) v.mark = 0, v.next = 0;
    std::size_t on = all.size();
    for (std::size_t i = 0; i < all.size() && on == all.size(); ++i)
      if (all[i].home == here_) on = find_cycle(all, i);
    if (on == all.size()) return;
    // The looks were not all at the same time: whoever has not gone on since then was there at all times. Who
    // has gone on before the fence is seen to.
    static_cast<void>(base::heavy_fence());
    std::size_t at = on;
    do {
      if (!still_waits(all[at], views_.rounds())) return;
      at = all[at].parent;
    } while (at != on);
    out_ << "  cycle: ";
    do {
      on_cycle(all[all[at].parent]);
      out_ << " waits for ";
      on_cycle(all[at]);
      at = all[at].parent;
      out_ << (at != on ? ", " : "\n");
    } while (at != on);
  }

  /// A strand, and the task in which it waits.
  void on_cycle(const strand_view& v) {
    strand_name(v);
    if (v.depth != 0) out_ << " in '" << v.in[innermost(v)].text << "'";
  }
  void strand_name(const strand_view& v) {
    out_ << "strand " << v.number + 1;
    if (v.home != here_) out_ << " of runtime " << number_of(*v.home);
  }
  static std::size_t innermost(const strand_view& v) noexcept {
    return std::min(std::max<std::size_t>(v.depth, 1), strand_view::most_names) - 1;
  }
  void names(const strand_view& v) {
    if (v.depth == 0) out_ << "no task";
    for (std::size_t i = 0; i < v.depth && i < strand_view::most_names; ++i) {
      if (i == 1 && v.depth > strand_view::most_names) out_ << " > ...";
      out_ << (i != 0 ? " > '" : "'") << v.in[i].text << "'";
    }
  }
  static std::size_t number_of(const engine& e) noexcept {
    for (const registered_engine* l = registered_engine::first(); l != nullptr; l = l->next())
      if (&l->home() == &e) return l->number();
    return 0;
  }

  description_sink out_;
  strand_views& views_;
  engine* here_ = nullptr;
};

/// *Throws*: std::bad_alloc. *Thread safety*: any thread, in a task as well. *Requires*: the engine lives.
inline std::string describe(const engine& e) {
  constexpr unsigned rounds = 20'000;
  std::string text;
  // With a debugger, whoever holds it may stand still.
  if (!base::lock_within(registered_engine::mutex, rounds))
    return "somebody else describes a runtime just now\n";
  const std::lock_guard hold(registered_engine::mutex, std::adopt_lock);
  std::size_t strands = 16;
  for (registered_engine* l = registered_engine::first(); l != nullptr; l = l->next())
    l->home().each_strand(rounds, [&](strand&, std::size_t) { ++strands; });
  std::vector<strand_view> room(strands);
  strand_views views(room, rounds);
  for (registered_engine* l = registered_engine::first(); l != nullptr; l = l->next()) views.add(l->home());
  const auto append = [](void* to, const char* t, std::size_t n) {
    static_cast<std::string*>(to)->append(t, n);
  };
  for (registered_engine* l = registered_engine::first(); l != nullptr; l = l->next())
    if (&l->home() == &e) describer(description_sink(append, &text), views).describe(*l);
  return text;
}

/// Writes the descriptions of all runtimes to a file, as far as that is possible without waiting and without
/// memory: for signal handlers of processes that are lost, and for debuggers.
inline void dump_living(int file) noexcept {
  constexpr unsigned rounds = 100;
  const auto put = [](void* to, const char* t, std::size_t n) {
    static_cast<void>(!::write(*static_cast<int*>(to), t, n));
  };
  description_sink out(put, &file);
  if (!base::lock_within(registered_engine::mutex, rounds)) {
    out << "the list of runtimes is locked\n";
    return;
  }
  const std::lock_guard hold(registered_engine::mutex, std::adopt_lock);
  static strand_view room[128];
  strand_views views(room, rounds);
  for (registered_engine* l = registered_engine::first(); l != nullptr; l = l->next()) views.add(l->home());
  describer d(out, views);
  for (registered_engine* l = registered_engine::first(); l != nullptr; l = l->next()) d.describe(*l);
}

}  // namespace weft::inline WEFT_ABI::sched
