// SPDX-License-Identifier: BSL-1.0
// Random programs on weft: every child a task, with what happened on the way.
#pragma once

#include "property/address.hpp"
#include "stream/programs.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <functional>
#include <type_traits>
#include <utility>

namespace stream_test {

/// What the serial program does for `count` seeds from `first` on, as another executable says, in which fork
/// is a call.
inline std::vector<result> serial_results(std::uint64_t first, int count, int depth) {
  const std::string command = std::string(WEFT_SERIAL_APPENDS) + ' ' + std::to_string(first) + ' ' +
                              std::to_string(count) + ' ' + std::to_string(depth);
  std::FILE* const from = ::popen(command.c_str(), "r");
  if (from == nullptr) throw std::runtime_error("cannot run " + command);
  std::vector<result> all;
  unsigned long long size, hash;
  int throws;
  while (std::fscanf(from, "%llu %llu %d", &size, &hash, &throws) == 3)
    all.push_back({size, hash, throws != 0});
  if (::pclose(from) != 0 || all.size() != static_cast<std::size_t>(count))
    throw std::runtime_error("no results of " + command);
  return all;
}

/// What has happened: bodies that went on elsewhere after a wait; writes that came before earlier ones.
struct happenings {
  weft::base::atomic<std::uint64_t> moves{0}, overtakings{0}, reads{0};
  weft::base::atomic<int> last{-1};

  void note_write(const std::string& bytes) {
    const int place = std::atoi(bytes.c_str());
    if (last.exchange(place, weft::base::memory_order_relaxed) > place)
      overtakings.fetch_add(1, weft::base::memory_order_relaxed);
  }
};

/// What all tasks of a program know. `rt`: null in a cluster, whose runs have no runs inside; there
/// `elsewhere` is what a task does that may be executed in another process.
struct world {
  weft::runtime* rt;
  happenings& seen;
  std::function<void()> dawdle;
  std::function<void()> elsewhere{};

  /// What `f` returns, if it is called in a run of its own.
  template <class F, class... A>
  auto run(F&& f, A&&... arguments) {
    using returned = decltype(rt->run(std::forward<F>(f), std::forward<A>(arguments)...));
    if (rt != nullptr) return rt->run(std::forward<F>(f), std::forward<A>(arguments)...);
    if constexpr (std::is_void_v<returned>) {
      weft::fork(std::forward<F>(f), std::forward<A>(arguments)...);
      weft::sync();
    } else {
      const auto made = weft::fork(std::forward<F>(f), std::forward<A>(arguments)...);
      weft::sync();
      return returned(made.get());
    }
  }
};
using property::address;

inline void nap(world& w) {
  const void* const before = weft::sched::current().executor;
  w.dawdle();
  weft::sync();
  if (weft::sched::current().executor != before) w.seen.moves.fetch_add(1, weft::base::memory_order_relaxed);
}

/// Children that a body left behind when it threw may have thrown, too; the serial program has not called
/// them.
inline void wait_in_vain() {
  try {
    weft::sync();
  } catch (const planned&) {
  }
}

inline void perhaps_elsewhere(address<const program> of, address<world> all);
/// A task that may go to another process.
inline void fork_without(const program& p, world& w) {
  weft::fork(perhaps_elsewhere, address<const program>(&p), address<world>(&w));
}
inline void without(const program& p, world& w) {
  for (const statement& s : p) switch (s.what) {
      case statement::kind::other_child:
        fork_without(s.body, w);
        break;
      case statement::kind::sync:
        weft::sync();
        break;
      case statement::kind::guarded:
        weft::sync();
        try {
          without(s.body, w);
          weft::sync();
        } catch (const planned&) {
          wait_in_vain();
        }
        break;
      case statement::kind::fail:
        throw planned();
      default:
        nap(w);
        break;
    }
}

inline void perhaps_elsewhere(address<const program> of, address<world> all) {
  if ((*all).elsewhere) (*all).elsewhere();
  without(*of, *all);
}

/// Appends bytes; in a cluster, such as come from a task that may go to another process.
inline void hand_in(const std::string& bytes, world& w, weft::append out) {
  if (!w.elsewhere) return static_cast<void>(out.stream() << bytes);
  weft::shared<std::string> text;
  weft::fork([](const std::string& from, weft::write<std::string> to) { to = from; }, bytes, text);
  weft::fork([](weft::read<std::string> from, weft::append to) { to.write(*from); }, text, out);
}

/// What there is from the position on, at most so much.
inline std::string next_of(world& w, weft::stream_reader in, std::uint64_t most) {
  w.seen.reads.fetch_add(1, weft::base::memory_order_relaxed);
  w.dawdle();
  std::string bytes(std::min(most, in.size() - in.position()), ' ');
  const std::uint64_t begin = in.position();
  const std::size_t half = in.read(std::as_writable_bytes(std::span(bytes).first(bytes.size() / 2)));
  w.dawdle();
  in.pread(std::as_writable_bytes(std::span(bytes).subspan(half)), begin + half);
  in.seek(static_cast<std::int64_t>(begin + bytes.size()));
  return bytes;
}
inline void read_all(world& w, weft::stream_reader in, weft::append out) {
  out.write(digest(next_of(w, in, in.size())));
}
inline void read_halves(world& w, weft::stream_reader in, weft::append out) {
  const std::string head = digest(next_of(w, in, in.size() / 2));
  weft::fork(read_all, std::ref(w), in, out);
  out.write(head);
}
inline void read_next(world& w, weft::stream_reader in, weft::append out) {
  out.write('(' + next_of(w, in, next_bytes) + ')');
}

inline void with(const program& p, world& w, weft::append out) {
  for (const statement& s : p) switch (s.what) {
      case statement::kind::write:
        w.seen.note_write(s.bytes);
        out.write(s.bytes);
        break;
      case statement::kind::text:
        hand_in(s.bytes, w, out);
        break;
      case statement::kind::hook:
        out.finalise([bytes = s.bytes](weft::append_tail& tail) { tail.write(bytes); });
        break;
      case statement::kind::append_child:
        weft::fork(with, std::cref(s.body), std::ref(w), out);
        break;
      case statement::kind::loop:
        weft::fork_for(0, s.times, [&s, &w](int, weft::append to) { with(s.body, w, to); }, out);
        break;
      case statement::kind::other_child:
        fork_without(s.body, w);
        break;
      case statement::kind::run:
        w.run(with, std::cref(s.body), std::ref(w), out);
        break;
      case statement::kind::sync:
        weft::sync();
        break;
      case statement::kind::guarded:
        weft::sync();
        try {
          with(s.body, w, out);
          weft::sync();
        } catch (const planned&) {
          wait_in_vain();
        }
        break;
      case statement::kind::fail:
        throw planned();
      case statement::kind::nap:
        nap(w);
        break;
      case statement::kind::read:
        weft::fork(read_halves, std::ref(w), weft::read(out), out);
        break;
      case statement::kind::look: {
        auto found = weft::fork([&w](weft::stream_reader in) { return digest(next_of(w, in, in.size())); },
                                weft::read(out));
        weft::fork([](const std::string& text, weft::append to) { to.write(text); }, weft::read(found), out);
        break;
      }
      case statement::kind::next:
        weft::fork(read_next, std::ref(w), weft::read(out, weft::file_pointer::global), out);
        break;
      case statement::kind::inspect:
        w.run(read_all, std::ref(w), weft::read(out), out);
        break;
    }
}

/// Runs a program between two writes of the stream's maker; then, if it `reads`, all that. *Returns*: whether
/// an exception left the run.
inline bool append_all(const program& p, world& w, weft::append_stream& to, bool reads) {
  bool thrown = false;
  to.write("begin ");
  try {
    w.run(with, std::cref(p), std::ref(w), to);
  } catch (const planned&) {
    thrown = true;
  }
  if (reads) to.write(w.run([&w](weft::stream_reader in) { return digest(next_of(w, in, in.size())); }, to));
  to.write("end");
  to.close();
  return thrown;
}

}  // namespace stream_test
