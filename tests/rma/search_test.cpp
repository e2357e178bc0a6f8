// SPDX-License-Identifier: BSL-1.0
// The locks in all interleavings: the very steps that processes execute, with words that a search saves and
// restores. No two exclude each other in vain, none waits for ever, an end can be reached from everywhere,
// and all words are as before at the end. Memory is sequentially consistent here: threads_test.cpp and the
// thread sanitizer see to the order of memory.
#include "support/catch.hpp"
#include "support/environment.hpp"

#include <weft/rma/detail/d_mcs_lock.hpp>
#include <weft/rma/detail/gated_lock.hpp>
#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/mcs_wp_lock.hpp>
#include <weft/rma/detail/one_group_lock.hpp>
#include <weft/rma/detail/rma_rw_lock.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rma = weft::rma;

namespace {

using rma::detail::d_mcs_lock;
using rma::detail::gated_lock;
using rma::detail::gbh_lock;
using rma::detail::mcs_writer_preference_lock;
using rma::detail::one_group_lock;
using rma::detail::rma_rw_lock;

/// Millions of states, where the compiler optimises; elsewhere the rounds are fewer.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(WEFT_MUTANTS)
constexpr bool thorough = true;
#else
constexpr bool thorough = false;
#endif

enum class what : std::uint8_t {
  write,
  try_write,
  unwrite,
  read,
  try_read,
  unread,
  read_all,
  try_read_all,
  unread_all
};
constexpr bool takes(what w) { return w != what::unwrite && w != what::unread && w != what::unread_all; }
/// How a target is held.
enum class held : std::uint8_t { free, shared, exclusive };
using targets = std::array<held, 2>;

struct operation {
  what does;
  rma::process target;
  targets before{}, during{}, after{};  // what the process holds
};
bool writes(const targets& t) { return std::find(t.begin(), t.end(), held::exclusive) != t.end(); }

/// What a process does, so many times. Those in small letters try until they succeed.
std::vector<operation> program_of(char role) {
  using enum what;
  std::vector<operation> p;
  switch (role) {
    case 'W':
      p = {{write, 0}, {unwrite, 0}};
      break;
    case 'w':
      p = {{try_write, 0}, {unwrite, 0}};
      break;
    case 'R':
      p = {{read, 0}, {unread, 0}};
      break;
    case 'r':
      p = {{try_read, 0}, {unread, 0}};
      break;
    case 'A':
      p = {{read_all, 0}, {unread_all, 0}};
      break;
    case 'a':
      p = {{try_read_all, 0}, {unread_all, 0}};
      break;
    case 'V':  // target 1 alone
      p = {{write, 1}, {unwrite, 1}};
      break;
    case 'Q':
      p = {{read, 1}, {unread, 1}};
      break;
    case 'N':  // both targets, one inside the other
      p = {{write, 0}, {write, 1}, {unwrite, 1}, {unwrite, 0}};
      break;
    case 'M':  // both targets, the first one is given back first
      p = {{write, 0}, {write, 1}, {unwrite, 0}, {unwrite, 1}};
      break;
    case 'n':  // the second one is tried
      p = {{write, 0}, {try_write, 1}, {unwrite, 1}, {unwrite, 0}};
      break;
    case 'B':  // writes one, reads the other one
      p = {{write, 0}, {read, 1}, {unread, 1}, {unwrite, 0}};
      break;
    default:
      FAIL("no role is called " << role);
  }
  targets now{};
  for (operation& o : p) {
    o.before = o.during = now;
    const auto set = [&o](targets& t, held h) {
      if (o.does == read_all || o.does == try_read_all || o.does == unread_all)
        t.fill(h);
      else
        t[static_cast<std::size_t>(o.target)] = h;
    };
    if (takes(o.does))
      set(now, o.does == write || o.does == try_write ? held::exclusive : held::shared);
    else
      set(now, held::free), o.during = now;
    o.after = now;
  }
  return p;
}

/// What the locks are told: groups of `group` processes, `row` writers in a row.
struct setting {
  int group = 1, row = 1;
};

template <class T>
struct type {
  using of = T;
};
/// Calls `f` with the type of the machine that does something, if the lock has one.
template <class Lock, class F>
void with_machine(what does, F&& f) {
  if (does == what::write) return f(type<typename Lock::exclusive>{});
  if (does == what::try_write) return f(type<typename Lock::try_exclusive>{});
  if (does == what::unwrite) return f(type<typename Lock::exclusive_release>{});
  if constexpr (requires { typename Lock::shared; }) {
    if (does == what::read) return f(type<typename Lock::shared>{});
    if (does == what::try_read) return f(type<typename Lock::try_shared>{});
    if (does == what::unread) return f(type<typename Lock::shared_release>{});
  }
  if constexpr (requires { typename Lock::shared_all; }) {
    if (does == what::read_all) return f(type<typename Lock::shared_all>{});
    if (does == what::try_read_all) return f(type<typename Lock::try_shared_all>{});
    if (does == what::unread_all) return f(type<typename Lock::shared_all_release>{});
  }
  FAIL("the lock has no such form");
}
template <class Lock>
constexpr std::size_t longest_machine() {
  std::size_t most = 0;
  const auto look = [&most](std::size_t s) { most = std::max(most, s); };
  look(sizeof(typename Lock::exclusive)), look(sizeof(typename Lock::try_exclusive));
  look(sizeof(typename Lock::exclusive_release));
  if constexpr (requires { typename Lock::shared; })
    look(sizeof(typename Lock::shared)), look(sizeof(typename Lock::try_shared)),
        look(sizeof(typename Lock::shared_release));
  if constexpr (requires { typename Lock::shared_all; })
    look(sizeof(typename Lock::shared_all)), look(sizeof(typename Lock::try_shared_all));
  return (most + 7) / 8;
}

/// Whether the words of a target are those of a lock that is free. A process may leave its place in a queue
/// as it is.
template <class Lock>
bool is_free(std::span<const std::uint64_t> words, std::uint32_t each, int group, rma::process target) {
  const std::uint64_t* const there = words.data() + static_cast<std::size_t>(target) * each;
  if constexpr (requires { Lock::window_word; })
    if (words[Lock::window_word] != 0) return false;
  if constexpr (std::is_base_of_v<mcs_writer_preference_lock, Lock>)
    return there[Lock::tail] == 0 && there[Lock::top] == 0 && there[Lock::state] == 0;
  if constexpr (std::is_same_v<Lock, d_mcs_lock>) return there[Lock::tail] == 0;
  if constexpr (std::is_same_v<Lock, gbh_lock>) return there[Lock::target_word] == 0;
  if constexpr (std::is_base_of_v<rma_rw_lock, Lock>) {
    if (there[Lock::groups_tail] != 0) return false;
    for (std::size_t first = 0; first < words.size(); first += each * static_cast<std::size_t>(group)) {
      const auto word = [&](std::uint32_t i) { return words[first + i]; };
      if (word(Lock::tail(target)) != 0 || word(Lock::came(target)) & Lock::closed ||
          word(Lock::came(target)) & Lock::held ||
          word(Lock::came(target)) / Lock::reader != word(Lock::gone(target)))
        return false;
    }
  }
  return true;
}

/// Its writers join the queue at once, as those do that have found the target contended lately.
struct one_group_queue : one_group_lock {
  using exclusive = queued_exclusive;
};

/// The words of all processes. Notes what an operation changes.
struct saved_words {
  std::uint64_t* all;
  std::uint32_t each;
  rma::process who;
  int operations = 0;
  std::size_t place = 0;  // of the last operation
  std::uint64_t was = 0;  // the word before it

  std::uint64_t& at(rma::process p, std::uint32_t i) {
    ++operations;
    place = static_cast<std::size_t>(p) * each + i;
    was = all[place];
    return all[place];
  }
  rma::process self() const { return who; }
  std::uint64_t load(rma::process p, std::uint32_t i) { return at(p, i); }
  void store(rma::process p, std::uint32_t i, std::uint64_t v) { at(p, i) = v; }
  std::uint64_t fetch_add(rma::process p, std::uint32_t i, std::uint64_t v) {
    at(p, i) += v;
    return was;
  }
  std::uint64_t fetch_or(rma::process p, std::uint32_t i, std::uint64_t v) {
    at(p, i) |= v;
    return was;
  }
  std::uint64_t exchange(rma::process p, std::uint32_t i, std::uint64_t v) {
    at(p, i) = v;
    return was;
  }
  std::uint64_t compare_exchange(rma::process p, std::uint32_t i, std::uint64_t expected, std::uint64_t v) {
    std::uint64_t& word = at(p, i);
    if (was == expected) word = v;
    return was;
  }
};

/// A process in a state, as words that are compared with others: where it is in its program, what its locks
/// have left for their release, and its machine, if it is in the middle of an operation; else zeros.
template <class Lock>
struct actor {
  std::uint32_t at;
  std::uint16_t rounds_left, busy;
  std::array<std::uint64_t, 2> tokens;
  std::array<std::uint64_t, longest_machine<Lock>()> machine;
};

/// Processes that lock and unlock, and their words.
template <class Lock>
class system_of {
 public:
  using process_state = actor<Lock>;
  system_of(std::string_view roles, const setting& how) : group(how.group) {
    int most = 0;
    for (const char r : roles) {
      programs.push_back(program_of(r));
      for (const operation& o : programs.back()) most = std::max(most, o.target);
    }
    last_target = most;
    each = Lock::words(most + 1);
    context_.processes = static_cast<int>(roles.size());
    context_.group = how.group;
    context_.most_in_a_row = how.row;
  }
  std::size_t size() const { return programs.size(); }
  /// What process i holds.
  const targets& held_by(std::size_t i, const process_state& a) const {
    const operation& o = programs[i][a.at];
    return a.busy ? o.during : o.before;
  }
  /// Whether some exclusive lock and another lock of the same target are held.
  bool collides(std::span<const process_state> all) const {
    for (std::size_t t = 0; t < targets{}.size(); ++t) {
      int writers = 0, others = 0;
      for (std::size_t i = 0; i < size(); ++i) {
        const held h = held_by(i, all[i])[t];
        writers += h == held::exclusive, others += h == held::shared;
      }
      if (writers > 1 || (writers == 1 && others != 0)) return true;
    }
    return false;
  }
  bool is_free(std::span<const std::uint64_t> words) const {
    for (rma::process t = 0; t <= last_target; ++t)
      if (!::is_free<Lock>(words, each, group, t)) return false;
    return true;
  }
  /// A step of process i. *Returns*: what it has achieved.
  rma::progress step(std::size_t i, process_state& a, saved_words& words) {
    const operation& o = programs[i][a.at];
    std::uint64_t& token = a.tokens[static_cast<std::size_t>(o.target)];
    rma::progress p = rma::progress::done;
    with_machine<Lock>(o.does, [&]<class Machine>(type<Machine>) {
      const auto go = [&](Machine& m) {
        p = m.step(words);
        a.busy = p != rma::progress::done;
        if (a.busy) return save_(m, a);
        a.machine.fill(0);
        if (takes(o.does)) token = rma::detail::token_of(m);
      };
      if constexpr (std::is_empty_v<Machine>) {
        Machine m{};
        go(m);
      } else if (a.busy) {
        std::array<unsigned char, sizeof(Machine)> bytes;
        std::memcpy(bytes.data(), a.machine.data(), bytes.size());
        auto m = std::bit_cast<Machine>(bytes);
        go(m);
      } else if constexpr (std::is_constructible_v<Machine, rma::process, rma::detail::lock_context>) {
        rma::detail::lock_context c = context_;
        c.holds_another = writes(o.during);
        another += c.holds_another;
        c.token = token;
        Machine m(o.target, c);
        go(m);
      } else {
        Machine m{};
        go(m);
      }
    });
    if (p == rma::progress::retry &&
        (o.does == what::try_write || o.does == what::try_read || o.does == what::try_read_all)) {
      ++failures;  // of a try: as if it had not been there
      a.busy = 0;
      a.machine.fill(0);
    }
    if (p != rma::progress::done) return p;
    if (!takes(o.does)) token = 0;
    if (++a.at == programs[i].size()) {
      a.at = 0;
      --a.rounds_left;
    }
    return p;
  }

  std::vector<std::vector<operation>> programs;
  std::uint32_t each;  // words of a process
  int group;
  rma::process last_target;
  std::size_t failures = 0, another = 0;  // of tries; operations of a process that has another target

 private:
  template <class Machine>
  static void save_(const Machine& m, process_state& a) {
    if constexpr (!std::is_empty_v<Machine>) {
      static_assert(std::has_unique_object_representations_v<Machine>);
      std::memcpy(a.machine.data(), &m, sizeof m);
    }
  }
  rma::detail::lock_context context_;
};

/// 128 bits by which states are told apart: the sum over all words of a hash of each with its place. So the
/// fingerprint of a state follows from that of the state before and the words that a step has changed. That
/// two of 10^7 states have the same one has a chance below 10^-23.
struct fingerprint {
  std::uint64_t low = 0, high = 0;
  bool operator==(const fingerprint&) const = default;
  void change(std::size_t place, std::uint64_t from, std::uint64_t to) {
    if (from == to) return;
    low += mixed_(to + first * (place + 1)) - mixed_(from + first * (place + 1));
    high += mixed_(to * second + (place << 48 | place)) - mixed_(from * second + (place << 48 | place));
  }

 private:
  static constexpr std::uint64_t first = 0x9e3779b97f4a7c15, second = 0xc2b2ae3d27d4eb4f;
  static constexpr std::uint64_t mixed_(std::uint64_t v) {
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
    v = (v ^ v >> 27) * 0x94d049bb133111eb;
    return v ^ v >> 31;
  }
};
/// Numbers fingerprints in the order in which they come.
class numbered {
 public:
  /// *Returns*: the number, and whether it is new.
  std::pair<std::uint32_t, bool> number_of(const fingerprint& f) {
    if (2 * all_.size() >= slots_.size()) grow_();
    std::uint32_t& slot = slots_[find_(f)];
    if (slot != 0) return {slot - 1, false};
    all_.push_back(f);
    slot = static_cast<std::uint32_t>(all_.size());
    return {slot - 1, true};
  }
  std::size_t size() const { return all_.size(); }

 private:
  std::size_t find_(const fingerprint& f) const {
    std::size_t at = f.low & (slots_.size() - 1);
    while (slots_[at] != 0 && all_[slots_[at] - 1] != f) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow_() {
    slots_.assign(std::max<std::size_t>(1024, 2 * slots_.size()), 0);
    for (std::size_t i = 0; i < all_.size(); ++i) slots_[find_(all_[i])] = static_cast<std::uint32_t>(i + 1);
  }
  std::vector<fingerprint> all_;
  std::vector<std::uint32_t> slots_;
};

struct findings {
  std::size_t states = 0, exclusion = 0, deadlocks = 0, unclean = 0, ends = 0, failures = 0, another = 0;
  std::size_t lost = 0;       // states from which no end can be reached
  bool one_operation = true;  // in each step, at most
};

/// Goes through all states, the last one found first.
template <class Lock>
class search {
  using process_state = actor<Lock>;
  static constexpr std::size_t actor_words = sizeof(process_state) / sizeof(std::uint64_t);
  static_assert(std::has_unique_object_representations_v<process_state>);

 public:
  search(std::string_view roles, int rounds, const setting& how) : system_(roles, how) {
    words_.resize(roles.size() * system_.each);
    actors_.resize(roles.size());
    for (process_state& a : actors_) a.rounds_left = static_cast<std::uint16_t>(rounds);
    size_ = words_.size() + actors_.size() * actor_words;
    push_({}, states_.number_of({}).first);
    while (!open_.empty()) {
      const entry e = open_.back();
      open_.pop_back();
      const std::uint64_t* const from = saved_.data() + saved_.size() - size_;
      std::memcpy(words_.data(), from, words_.size() * sizeof(std::uint64_t));
      std::memcpy(static_cast<void*>(actors_.data()), from + words_.size(),
                  actors_.size() * sizeof(process_state));
      saved_.resize(saved_.size() - size_);
      expand_(e);
    }
    found.states = states_.size();
    found.failures = system_.failures;
    found.another = system_.another;
    go_back_();
  }
  findings found;

 private:
  struct entry {
    fingerprint sum;
    std::uint32_t number;
  };

  void push_(const fingerprint& sum, std::uint32_t number) {
    open_.push_back({sum, number});
    saved_.insert(saved_.end(), words_.begin(), words_.end());
    const std::size_t at = saved_.size();
    saved_.resize(at + actors_.size() * actor_words);
    std::memcpy(saved_.data() + at, static_cast<const void*>(actors_.data()),
                actors_.size() * sizeof(process_state));
  }
  void expand_(const entry& e) {
    bool moves = false, over = true;
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      process_state& a = actors_[i];
      if (a.rounds_left == 0) continue;
      over = false;
      const process_state before = a;
      saved_words words{words_.data(), system_.each, static_cast<rma::process>(i)};
      const rma::progress p = system_.step(i, a, words);
      found.one_operation = found.one_operation && words.operations <= 1;
      fingerprint sum = e.sum;
      if (words.operations != 0) sum.change(words.place, words.was, words_[words.place]);
      std::array<std::uint64_t, actor_words> was, is;
      std::memcpy(was.data(), static_cast<const void*>(&before), sizeof before);
      std::memcpy(is.data(), static_cast<const void*>(&a), sizeof a);
      for (std::size_t w = 0; w < actor_words; ++w)
        sum.change(words_.size() + i * actor_words + w, was[w], is[w]);
      if (sum != e.sum) {
        moves = true;
        const auto [number, fresh] = states_.number_of(sum);
        edges_.push_back({number, e.number});
        if (fresh) {
          if (p == rma::progress::done) found.exclusion += system_.collides(actors_);
          push_(sum, number);
        }
      }
      a = before;
      if (words.operations != 0) words_[words.place] = words.was;
    }
    if (over) {
      ++found.ends;
      ends_.push_back(e.number);
      if (!system_.is_free(words_)) ++found.unclean;
    } else if (!moves) {
      ++found.deadlocks;
    }
  }
  /// Goes from the ends back along all steps, and counts the states where that does not come.
  void go_back_() {
    std::vector<std::uint32_t> first(found.states + 1),
        from(edges_.size());  // of each state, those before it
    for (const edge& e : edges_) ++first[e.to];
    for (std::size_t s = 1; s < first.size(); ++s) first[s] += first[s - 1];
    for (const edge& e : edges_) from[--first[e.to]] = e.from;
    std::vector<bool> ends(found.states);
    for (const std::uint32_t s : ends_) ends[s] = true;
    std::size_t reached = ends_.size();
    while (!ends_.empty()) {
      const std::uint32_t s = ends_.back();
      ends_.pop_back();
      for (std::uint32_t k = first[s]; k < first[s + 1]; ++k)
        if (!ends[from[k]]) ends[from[k]] = true, ends_.push_back(from[k]), ++reached;
    }
    found.lost = found.states - reached;
  }

  struct edge {
    std::uint32_t to, from;
  };
  system_of<Lock> system_;
  std::vector<std::uint64_t> words_;  // the state that is looked at: the words, and the processes
  std::vector<process_state> actors_;
  std::size_t size_ = 0;  // of a state, in words
  numbered states_;
  std::vector<entry> open_;           // states whose steps are not known yet,
  std::vector<std::uint64_t> saved_;  // and what they consist of
  std::vector<edge> edges_;
  std::vector<std::uint32_t> ends_;
};

template <class Lock>
void check(std::string_view roles, int rounds, const setting& how = {}) {
  const findings f = search<Lock>(roles, rounds, how).found;
  INFO(roles << " x " << rounds << ", groups of " << how.group << ", " << how.row
             << " writers in a row: " << f.states << " states, " << f.ends << " ends");

  CHECK(f.exclusion == 0);
  CHECK(f.deadlocks == 0);
  CHECK(f.lost == 0);
  CHECK(f.unclean == 0);
  CHECK(f.ends > 0);
  CHECK(f.states > 100);
  CHECK(f.one_operation);
  if (roles.find_first_of("wrna") != roles.npos) CHECK(f.failures > 0);
  CHECK((f.another > 0) == (roles.find_first_of("NMnB") != roles.npos));
}

/// Processes that lock and unlock for ever, stepped in an order that a test chooses.
template <class Lock>
class schedule {
 public:
  schedule(std::string_view roles, const setting& how)
      : system_(roles, how), words_(roles.size() * system_.each), actors_(roles.size()) {}
  /// One step of process i. *Returns*: whether it has come inside by it.
  bool step(std::size_t i) {
    const bool was = inside(i);
    saved_words words{words_.data(), system_.each, static_cast<rma::process>(i)};
    actors_[i].rounds_left = 2;  // for ever
    system_.step(i, actors_[i], words);
    return !was && inside(i);
  }
  bool inside(std::size_t i) const {
    const targets& t = system_.held_by(i, actors_[i]);
    return std::any_of(t.begin(), t.end(), [](held h) { return h != held::free; });
  }
  /// Steps until process i comes inside, or has left.
  void pass(std::size_t i) {
    const bool was = inside(i);
    while (inside(i) == was || actors_[i].busy) step(i);
  }
  /// The first process comes inside, the others wait; then all step in turn until the last one has come
  /// inside. *Returns*: how often others have meanwhile, 1000 at most.
  int overtaken() {
    pass(0);
    for (std::size_t i = 1; i < actors_.size(); ++i)
      for (int k = 0; k < 12 && !inside(i); ++k) step(i);
    for (int others = 0;;)
      for (std::size_t i = 0; i < actors_.size(); ++i) {
        if (step(i)) {
          if (i + 1 == actors_.size()) return others;
          if (++others == 1000) return others;
        }
      }
  }

 private:
  system_of<Lock> system_;
  std::vector<std::uint64_t> words_;
  std::vector<actor<Lock>> actors_;
};

/// Configurations of readers and writers. Those of a gated lock are four times as large, and its readers do
/// not meet the gate: the largest two of them wait for a long run.
template <class Lock>
void check_readers_and_writers(const setting& how = {}) {
  constexpr bool is_gated = requires { typename Lock::enter; };
  check<Lock>("WWR", thorough ? 3 : 2, how);
  check<Lock>("WRR", thorough ? 3 : 2, how);
  check<Lock>("WWRR", 1, how);
  check<Lock>("WRRR", 1, how);
  check<Lock>("WWWR", 1, how);
  if (!thorough) return;
  check<Lock>("WWRR", 2, how);
  if (is_gated && !weft_test::long_run()) return;
  check<Lock>("WRRR", 2, how);
  check<Lock>("WWWR", 2, how);
}

/// Processes that lock two targets, beside others of one target, and of all.
template <class Lock>
void check_two_targets(const setting& how = {}) {
  check<Lock>("NM", 3, how);
  check<Lock>("NV", 3, how);
  check<Lock>("nV", 2, how);
  check<Lock>("NMV", 1, how);
  check<Lock>("NMM", 1, how);
  check<Lock>("NnV", 1, how);
  if constexpr (requires { typename Lock::shared; }) {
    check<Lock>("NBQ", thorough ? 2 : 1, how);
    check<Lock>("BV", 3, how);
    check<Lock>("NRQ", thorough ? 2 : 1, how);
  }
  if constexpr (requires { typename Lock::shared_all; }) {
    check<Lock>("NA", 3, how);
    check<Lock>("NMA", thorough ? 2 : 1, how);
    check<Lock>("NVA", thorough ? 2 : 1, how);
    check<Lock>("nVA", thorough ? 2 : 1, how);
    check<Lock>("NAA", 2, how);
  }
}

}  // namespace

TEST_CASE("counters exclude as they shall, in all interleavings") {
  check<gbh_lock>("WW", 3);
  check_readers_and_writers<gbh_lock>();
  check<gbh_lock>("WWA", 3);
  check<gbh_lock>("WRA", 3);
  check<gbh_lock>("WAA", 3);
  check<gbh_lock>("WWRA", 2);
}

TEST_CASE("queues exclude as they shall, in all interleavings") {
  check<d_mcs_lock>("WW", 3);
  check<d_mcs_lock>("WWW", 3);
  check<d_mcs_lock>("WWWW", thorough ? 2 : 1);
}

TEST_CASE("queues with a preference for writers exclude as they shall, in all interleavings") {
  check_readers_and_writers<mcs_writer_preference_lock>();
}

TEST_CASE("groups of readers and writers exclude as they shall, in all interleavings") {
  for (const setting how : {setting{1, 1}, setting{2, 1}, setting{2, 2}, setting{3, 2}}) {
    check<rma_rw_lock>("WWR", 2, how);
    check<rma_rw_lock>("WRR", 2, how);
    check<rma_rw_lock>("WWW", 1, how);
  }
  check_readers_and_writers<rma_rw_lock>({2, 2});
  check<rma_rw_lock>("WRWR", 2, {2, 2});
  check<rma_rw_lock>("WRRR", 2, {1, 1});
}

TEST_CASE("one group of readers and writers excludes as it shall, in all interleavings") {
  for (const int row : {1, 2}) {
    check<one_group_lock>("WW", 3, {2, row});
    check<one_group_lock>("WWR", thorough ? 3 : 2, {3, row});
    check<one_group_lock>("WRR", 3, {3, row});
    check<one_group_queue>("WWW", 2, {3, row});
  }
  check<one_group_lock>("WWW", thorough ? 2 : 1, {4, 2});
  check<one_group_lock>("WWRR", thorough && weft_test::long_run() ? 2 : 1, {4, 2});
  check<one_group_lock>("WRRR", 2, {4, 1});
  check<one_group_lock>("WWWR", 1, {4, 2});
  check_readers_and_writers<one_group_queue>({4, 2});
}

TEST_CASE("tries take a lock or leave it as it was, in all interleavings") {
  check<gbh_lock>("wWR", 1);
  check<gbh_lock>("wrR", 2);
  check<gbh_lock>("wWA", 2);
  check<gbh_lock>("WWa", 2);
  check<gbh_lock>("waA", 2);
  check<d_mcs_lock>("wWW", 1);
  check<d_mcs_lock>("ww", 3);
  check<mcs_writer_preference_lock>("wWR", 2);
  check<mcs_writer_preference_lock>("wrW", 2);
  check<mcs_writer_preference_lock>("wWRR", 1);
  check<rma_rw_lock>("wWR", 1, {2, 2});
  check<rma_rw_lock>("wwr", 2, {1, 1});
  check<rma_rw_lock>("wWrR", 1, {2, 2});
  check<gated_lock<rma_rw_lock>>("wWR", 1, {2, 2});
  check<gated_lock<rma_rw_lock>>("wrW", 1, {1, 1});
  check<one_group_lock>("wwr", 3, {3, 1});
  check<one_group_lock>("wWR", 2, {3, 2});
  check<one_group_lock>("wWrR", 1, {4, 2});
  check<one_group_queue>("wWR", 2, {3, 1});
  check<one_group_queue>("wWW", 2, {3, 2});
  check<one_group_queue>("wWWR", 1, {4, 2});
  check<one_group_queue>("wwWR", 1, {4, 1});
  check<one_group_queue>("wWrR", 1, {4, 2});
  check<gated_lock<one_group_lock>>("wWR", 1, {3, 2});
  check<gated_lock<one_group_lock>>("wrW", 2, {3, 1});
}

TEST_CASE("locks of all targets exclude writers, in all interleavings") {
  using queues = gated_lock<mcs_writer_preference_lock>;
  using groups = gated_lock<rma_rw_lock>;
  check<queues>("WWA", 2);
  check<queues>("WAA", 2);
  check<queues>("WRA", 2);
  check<queues>("wWA", 1);
  check<queues>("WWa", 2);
  check<queues>("waA", 1);
  check_readers_and_writers<queues>();
  check<groups>("WWA", 2, {2, 2});
  check<groups>("WAA", 2, {1, 1});
  check<groups>("WRA", 2, {2, 1});
  check<groups>("wWA", 1, {2, 2});
  check<groups>("WWa", 1, {2, 2});
  check_readers_and_writers<groups>({2, 2});
  using one_group = gated_lock<one_group_lock>;
  check<one_group>("WWA", 2, {3, 2});
  check<one_group>("WRA", 2, {3, 1});
  check<one_group>("wWA", 1, {3, 2});
  check<one_group>("WWa", 1, {3, 2});
  check<one_group>("WWR", 2, {3, 1});
  check<one_group>("WWRR", 1, {4, 2});
  check<one_group>("WWWR", 1, {4, 2});
}

TEST_CASE("processes that hold one target and lock another one, in all interleavings") {
  check_two_targets<gbh_lock>();
  check_two_targets<d_mcs_lock>();
  check_two_targets<mcs_writer_preference_lock>();
  check_two_targets<gated_lock<mcs_writer_preference_lock>>();
  check_two_targets<rma_rw_lock>({2, 2});
  check_two_targets<gated_lock<rma_rw_lock>>({1, 1});
  check_two_targets<one_group_lock>({3, 2});
  check_two_targets<gated_lock<one_group_lock>>({3, 1});
}

TEST_CASE("who may starve, and who may not") {
  // Two readers that overlap keep a writer out for ever.
  {
    schedule<gbh_lock> counters("RRW", {});
    counters.pass(0);
    int failures = 0;
    for (int i = 0; i < 1000; ++i) {
      counters.pass(1 - i % 2);  // the other one comes in
      for (int k = 0; k < 3; ++k) failures += !counters.step(2);
      counters.pass(i % 2);  // and the first one leaves
    }
    CHECK(failures == 3000);
  }
  // Writers that follow each other do so with a reader,
  {
    schedule<gbh_lock> counters("WWR", {});
    int failures = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      counters.pass(i % 2);
      for (int k = 0; k < 2; ++k) failures += !counters.step(2);  // adds itself, and takes that back
      counters.pass(i % 2);
    }
    CHECK(failures == 2000);
    CHECK_FALSE(counters.inside(2));
  }
  // and also with one that locks all, though none of them comes inside any more: each counts itself before
  // the other one has taken that back.
  {
    schedule<gbh_lock> counters("WWA", {});
    counters.pass(0);
    counters.step(2);  // no writer comes inside from now on
    counters.step(1);
    counters.pass(0);
    int failures = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      counters.step(i % 2);  // counts itself
      failures += !counters.step(2);
      counters.step(1 - i % 2);  // takes that back
      failures += !counters.step(2);
    }
    CHECK(failures == 2000);
    CHECK_FALSE((counters.inside(0) || counters.inside(1)));
    counters.step(1);  // when they pause, it is let in
    CHECK(counters.step(2));
  }
  // Who locks all of a gated lock gives way to writers that overlap,
  {
    using queues = gated_lock<mcs_writer_preference_lock>;
    schedule<queues> gate("WWA", {});
    gate.pass(0);
    int failures = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      for (int k = 0; k < 6; ++k) gate.step(1 - i % 2);  // waits, and is counted
      failures += !gate.step(2);
      gate.pass(i % 2);      // leaves, and hands over
      gate.pass(1 - i % 2);  // comes inside
      failures += !gate.step(2);
    }
    CHECK(failures == 2000);
    // and also if it has seen none and one comes before it has counted itself: it takes its count back.
    schedule<queues> close("WA", {});
    close.step(1);  // sees no writer
    close.step(0);  // which comes
    for (int k = 0; k < 2; ++k) CHECK_FALSE(close.step(1));
    close.pass(0);
    CHECK(close.inside(0));
    for (int k = 0; k < 10; ++k) CHECK_FALSE(close.step(1));
    close.pass(0);
    close.pass(1);
    CHECK(close.inside(1));
  }
  // Writers that hand over to each other keep readers out; writers are served in their order.
  CHECK(schedule<mcs_writer_preference_lock>("WWWR", {}).overtaken() == 1000);
  CHECK(schedule<mcs_writer_preference_lock>("RRRW", {}).overtaken() <= 3);
  CHECK(schedule<mcs_writer_preference_lock>("WWWW", {}).overtaken() <= 3);
  CHECK(schedule<d_mcs_lock>("WWWW", {}).overtaken() <= 3);
  // Nobody starves: a reader waits for the writers that follow each other, and not for another row of them.
  for (const int row : {1, 2, 8}) {
    CHECK(schedule<rma_rw_lock>("WWWWWWR", {7, row}).overtaken() == row - 1);
    CHECK(schedule<gated_lock<rma_rw_lock>>("WWWWWWR", {7, row}).overtaken() == row - 1);
    CHECK(schedule<rma_rw_lock>("WWWWWWWR", {4, row}).overtaken() == row - 1);
    CHECK(schedule<rma_rw_lock>("RRRW", {2, row}).overtaken() <= 20);  // while it walks to the counters
    CHECK(schedule<rma_rw_lock>("WWWW", {2, row}).overtaken() <= 3 * row + 1);
    CHECK(schedule<one_group_queue>("WWWWWWR", {7, row}).overtaken() == row - 1);
    CHECK(schedule<one_group_lock>("RRRW", {4, row}).overtaken() <= 3);
    CHECK(schedule<one_group_lock>("WWWW", {4, row}).overtaken() <= 3);
    CHECK(schedule<gated_lock<one_group_lock>>("WWWR", {4, row}).overtaken() <= row + 1);
  }
  // A try gives way to a writer that is in the queue, though that has not closed the counter yet.
  {
    schedule<one_group_queue> queue("Ww", {2, 1});
    for (int k = 0; k < 3; ++k) queue.step(0);
    for (int k = 0; k < 20; ++k) CHECK_FALSE(queue.step(1));
    queue.pass(0);
    CHECK(queue.inside(0));
    queue.pass(0);
    queue.pass(1);
    CHECK(queue.inside(1));
  }
  // The first one of the queue waits for one writer without it, which others would follow.
  {
    schedule<one_group_queue> queue("Www", {3, 1});
    queue.pass(1);
    for (int k = 0; k < 10; ++k) queue.step(0);
    queue.pass(1);
    for (int k = 0; k < 20; ++k) CHECK_FALSE((queue.step(1) || queue.step(2)));
    queue.pass(0);
    CHECK(queue.inside(0));
  }
}
