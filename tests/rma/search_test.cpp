// SPDX-License-Identifier: BSL-1.0
// The locks in all interleavings: the very steps that processes execute, with words that a search saves and
// restores. No two exclude each other in vain, none waits for ever, and all words are as before at the end.
#include "support/catch.hpp"

#include <weft/rma/detail/d_mcs_lock.hpp>
#include <weft/rma/detail/gated_lock.hpp>
#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/mcs_wp_lock.hpp>
#include <weft/rma/detail/rma_rw_lock.hpp>

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <variant>
#include <vector>

namespace rma = weft::rma;

namespace {

/// Millions of states, where the compiler optimises; elsewhere the rounds are fewer.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool thorough = true;
#else
constexpr bool thorough = false;
#endif

/// What a process does: locks target 0 in one way and unlocks it, so many times. Those in small letters try
/// until they succeed.
enum class role : char { writer = 'W', reader = 'R', all = 'A', trying_writer = 'w', trying_reader = 'r' };
bool writes(role r) { return r == role::writer || r == role::trying_writer; }

/// What the locks are told: groups of `group` processes, `row` writers in a row.
struct setting {
  int group = 1, row = 1;
};

/// The machines of a lock; a process is between two of them outside or inside.
template <class Lock>
struct machines {
  using type = std::variant<std::monostate, typename Lock::exclusive, typename Lock::try_exclusive,
                            typename Lock::exclusive_release, typename Lock::shared,
                            typename Lock::try_shared, typename Lock::shared_release>;
};
template <class Lock>
  requires requires { typename Lock::shared_all; }
struct machines<Lock> {
  using type = std::variant<std::monostate, typename Lock::exclusive, typename Lock::try_exclusive,
                            typename Lock::exclusive_release, typename Lock::shared,
                            typename Lock::try_shared, typename Lock::shared_release,
                            typename Lock::shared_all, typename Lock::shared_all_release>;
};
template <>
struct machines<rma::detail::gbh_lock> {  // its tries are the first rounds of what waits
  using lock = rma::detail::gbh_lock;
  using type = std::variant<std::monostate, lock::exclusive, lock::exclusive_release, lock::shared,
                            lock::shared_release, lock::shared_all, lock::shared_all_release>;
};
template <>
struct machines<rma::detail::d_mcs_lock> {
  using lock = rma::detail::d_mcs_lock;
  using type = std::variant<std::monostate, lock::exclusive, lock::try_exclusive, lock::exclusive_release>;
};

template <class Lock>
typename machines<Lock>::type machine_of(role r, bool release, const rma::detail::lock_context& c) {
  if (r == role::writer && !release) return typename Lock::exclusive(0, c);
  if (r == role::trying_writer && !release) return typename Lock::try_exclusive(0, c);
  if (writes(r)) return typename Lock::exclusive_release(0, c);
  if constexpr (requires { typename Lock::shared; }) {
    if (r == role::reader && !release) return typename Lock::shared(0, c);
    if (r == role::trying_reader && !release) return typename Lock::try_shared(0, c);
    if (r != role::all) return typename Lock::shared_release(0, c);
  }
  if constexpr (requires { typename Lock::shared_all; }) {
    if (!release) return typename Lock::shared_all{};
    return typename Lock::shared_all_release{};
  }
  return {};
}

/// Whether the words are those of a lock that is free. A process may leave its place in a queue as it is.
template <class Lock>
bool is_free(const std::vector<std::uint64_t>& words, std::uint32_t each, const setting& how) {
  using namespace rma::detail;
  if constexpr (std::is_base_of_v<mcs_writer_preference_lock, Lock>)
    return words[Lock::tail] == 0 && words[Lock::top] == 0 && words[Lock::state] == 0 &&
           words[Lock::window_word] == 0;
  if constexpr (std::is_same_v<Lock, d_mcs_lock>) return words[Lock::tail] == 0;
  if constexpr (std::is_same_v<Lock, gbh_lock>)
    return words[Lock::window_word] == 0 && words[Lock::target_word] == 0;
  if constexpr (std::is_base_of_v<rma_rw_lock, Lock>) {
    if (words[Lock::groups_tail] != 0) return false;
    for (std::size_t first = 0; first < words.size(); first += each * static_cast<std::size_t>(how.group)) {
      const auto word = [&](std::uint32_t i) { return words[first + i]; };
      if (word(Lock::tail(0)) != 0 || word(Lock::came(0)) & Lock::closed ||
          word(Lock::came(0)) / Lock::reader != word(Lock::gone(0)))
        return false;
    }
  }
  return true;
}

/// The words of all processes.
struct saved_words {
  std::vector<std::uint64_t>& all;
  std::uint32_t each;
  rma::process who;
  int operations = 0;

  std::uint64_t& at(rma::process p, std::uint32_t i) {
    ++operations;
    return all.at(static_cast<std::size_t>(p) * each + i);
  }
  rma::process self() const { return who; }
  std::uint64_t load(rma::process p, std::uint32_t i) { return at(p, i); }
  void store(rma::process p, std::uint32_t i, std::uint64_t v) { at(p, i) = v; }
  std::uint64_t fetch_add(rma::process p, std::uint32_t i, std::uint64_t v) {
    return std::exchange(at(p, i), all.at(static_cast<std::size_t>(p) * each + i) + v);
  }
  std::uint64_t fetch_or(rma::process p, std::uint32_t i, std::uint64_t v) {
    return std::exchange(at(p, i), all.at(static_cast<std::size_t>(p) * each + i) | v);
  }
  std::uint64_t exchange(rma::process p, std::uint32_t i, std::uint64_t v) {
    return std::exchange(at(p, i), v);
  }
  std::uint64_t compare_exchange(rma::process p, std::uint32_t i, std::uint64_t expected, std::uint64_t v) {
    std::uint64_t& word = at(p, i);
    const std::uint64_t was = word;
    if (was == expected) word = v;
    return was;
  }
};

struct findings {
  std::size_t states = 0, exclusion = 0, deadlocks = 0, unclean = 0, ends = 0, failures = 0;
  bool one_operation = true;  // in each step, at most
};

/// Goes through all states.
template <class Lock>
class search {
  using machine = typename machines<Lock>::type;
  struct actor {
    machine now;  // nothing: outside
    int rounds_left;
    bool inside = false, entering = false;
    std::uint64_t token = 0;
  };
  struct state {
    std::vector<std::uint64_t> words;
    std::vector<actor> actors;
  };

 public:
  search(std::string_view roles, int rounds, const setting& how)
      : roles_(roles), how_(how), each_(Lock::words(static_cast<int>(roles.size()))) {
    state first{std::vector<std::uint64_t>(roles.size() * each_), {}};
    for (std::size_t i = 0; i < roles.size(); ++i) first.actors.push_back({{}, rounds});
    add_(std::move(first));
    while (!open_.empty()) {
      const state s = std::move(open_.back());
      open_.pop_back();
      expand_(s);
    }
  }
  findings found;

 private:
  role role_(std::size_t i) const { return static_cast<role>(roles_[i]); }
  static std::string bytes_of_(const state& s) {
    std::string b(reinterpret_cast<const char*>(s.words.data()), s.words.size() * sizeof(std::uint64_t));
    for (const actor& a : s.actors) {
      b += static_cast<char>(a.now.index());
      b += static_cast<char>(a.rounds_left * 4 + a.inside * 2 + a.entering);
      b += static_cast<char>(a.token);
      std::visit(
          [&b](const auto& m) {
            if constexpr (!std::is_empty_v<std::remove_cvref_t<decltype(m)>>) {
              static_assert(std::has_unique_object_representations_v<std::remove_cvref_t<decltype(m)>>);
              b.append(reinterpret_cast<const char*>(&m), sizeof m);
            }
          },
          a.now);
    }
    return b;
  }
  /// Two independent hashes of 64 bits: states are told apart by them.
  static std::pair<std::uint64_t, std::uint64_t> hash_(const std::string& b) {
    std::uint64_t x = 0x9e3779b97f4a7c15, y = 0xc2b2ae3d27d4eb4f;
    std::size_t i = 0;
    for (; i < b.size(); i += 8) {
      std::uint64_t v = 0;
      std::memcpy(&v, b.data() + i, std::min<std::size_t>(8, b.size() - i));
      x = std::rotl((x ^ v) * 0xff51afd7ed558ccd, 31);
      y = std::rotl((y + v) * 0x87c37b91114253d5, 29) ^ v;
    }
    return {x, y};
  }
  bool add_(state&& s) {
    const auto [x, y] = hash_(bytes_of_(s));
    if (!known_.insert(x ^ std::rotl(y, 17) * 5).second) return false;
    open_.push_back(std::move(s));
    ++found.states;
    return true;
  }
  void expand_(const state& s) {
    bool moves = false, over = true;
    for (std::size_t i = 0; i < s.actors.size(); ++i) {
      const actor& before = s.actors[i];
      if (before.rounds_left == 0) continue;
      over = false;
      state next = s;
      actor& a = next.actors[i];
      if (a.now.index() == 0) {  // enters the next protocol
        rma::detail::lock_context c;
        c.processes = static_cast<int>(roles_.size());
        c.group = how_.group;
        c.most_in_a_row = how_.row;
        c.token = a.token;
        a.now = machine_of<Lock>(role_(i), a.inside, c);
        a.entering = !a.inside;
        a.inside = false;
      }
      saved_words words{next.words, each_, static_cast<rma::process>(i)};
      const rma::progress p = std::visit(
          [&](auto& m) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(m)>, std::monostate>)
              return rma::progress::done;
            else
              return m.step(words);
          },
          a.now);
      found.one_operation = found.one_operation && words.operations <= 1;
      if (p == rma::progress::retry && (role_(i) == role::trying_writer || role_(i) == role::trying_reader)) {
        ++found.failures;  // of a try: as if it had not been there
        a.entering = false;
        a.now = {};
      }
      if (p == rma::progress::done) {
        if (a.entering)
          a.inside = true, a.token = token_(a.now), check_exclusion_(next);
        else
          --a.rounds_left;
        a.entering = false;
        a.now = {};
      }
      moves = moves || bytes_of_(next) != bytes_of_(s);
      add_(std::move(next));
    }
    if (over) {
      ++found.ends;
      if (!is_free<Lock>(s.words, each_, how_)) ++found.unclean;
    } else if (!moves) {
      ++found.deadlocks;
    }
  }
  void check_exclusion_(const state& s) {
    int writers = 0, others = 0;
    for (std::size_t i = 0; i < s.actors.size(); ++i)
      if (s.actors[i].inside) (writes(role_(i)) ? writers : others) += 1;
    if (writers > 1 || (writers == 1 && others != 0)) ++found.exclusion;
  }

  static std::uint64_t token_(const machine& m) {
    return std::visit([](const auto& of) { return rma::detail::token_of(of); }, m);
  }

  std::string_view roles_;
  setting how_;
  std::uint32_t each_;
  std::unordered_set<std::uint64_t> known_;
  std::vector<state> open_;
};

template <class Lock>
void check(std::string_view roles, int rounds, const setting& how = {}) {
  const findings f = search<Lock>(roles, rounds, how).found;
  INFO(roles << " x " << rounds << ", groups of " << how.group << ", " << how.row
             << " writers in a row: " << f.states << " states, " << f.ends << " ends");

  CHECK(f.exclusion == 0);
  CHECK(f.deadlocks == 0);
  CHECK(f.unclean == 0);
  CHECK(f.ends > 0);
  CHECK(f.states > 100);
  CHECK(f.one_operation);
  if (roles.find_first_of("wr") != roles.npos) CHECK(f.failures > 0);
}

/// Processes that lock and unlock target 0 for ever, stepped in an order that a test chooses.
template <class Lock>
class schedule {
 public:
  schedule(std::string_view roles, const setting& how)
      : roles_(roles),
        each_(Lock::words(static_cast<int>(roles.size()))),
        words_(roles.size() * each_),
        actors_(roles.size()) {
    context_.processes = static_cast<int>(roles.size());
    context_.group = how.group;
    context_.most_in_a_row = how.row;
  }
  /// One step of process i. *Returns*: whether it has come inside by it.
  bool step(std::size_t i) {
    actor& a = actors_[i];
    const auto r = static_cast<role>(roles_[i]);
    if (a.now.index() == 0) {
      context_.token = a.token;
      a.now = machine_of<Lock>(r, a.inside, context_);
    }
    saved_words words{words_, each_, static_cast<rma::process>(i)};
    const rma::progress p = std::visit(
        [&](auto& m) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(m)>, std::monostate>)
            return rma::progress::done;
          else
            return m.step(words);
        },
        a.now);
    if (p != rma::progress::done) return false;
    a.token = std::visit([](const auto& of) { return rma::detail::token_of(of); }, a.now);
    a.inside = !a.inside;
    a.now = {};
    return a.inside;
  }
  /// Steps until process i comes inside, or leaves.
  void pass(std::size_t i) {
    for (const bool was = actors_[i].inside; actors_[i].inside == was;) step(i);
  }
  /// The first process comes inside, the others wait; then all step in turn until the last one has come
  /// inside. *Returns*: how often others have meanwhile, 1000 at most.
  int overtaken() {
    pass(0);
    for (std::size_t i = 1; i < actors_.size(); ++i)
      for (int k = 0; k < 12 && !actors_[i].inside; ++k) step(i);
    for (int others = 0;;)
      for (std::size_t i = 0; i < actors_.size(); ++i) {
        if (step(i)) {
          if (i + 1 == actors_.size()) return others;
          if (++others == 1000) return others;
        }
      }
  }

 private:
  struct actor {
    typename machines<Lock>::type now;
    bool inside = false;
    std::uint64_t token = 0;
  };
  std::string_view roles_;
  std::uint32_t each_;
  std::vector<std::uint64_t> words_;
  std::vector<actor> actors_;
  rma::detail::lock_context context_;
};

}  // namespace

TEST_CASE("counters exclude as they shall, in all interleavings") {
  check<rma::detail::gbh_lock>("WW", 3);
  check<rma::detail::gbh_lock>("WRR", 2);
  check<rma::detail::gbh_lock>("WWR", 2);
  check<rma::detail::gbh_lock>("WWA", 2);
  check<rma::detail::gbh_lock>("WRA", 2);
  check<rma::detail::gbh_lock>("WWRA", 1);
}

TEST_CASE("queues exclude as they shall, in all interleavings") {
  check<rma::detail::d_mcs_lock>("WW", 3);
  check<rma::detail::d_mcs_lock>("WWW", 2);
  check<rma::detail::d_mcs_lock>("WWWW", 1);
}

TEST_CASE("queues with a preference for writers exclude as they shall, in all interleavings") {
  check<rma::detail::mcs_writer_preference_lock>("WWR", 3);
  check<rma::detail::mcs_writer_preference_lock>("WRR", 3);
  for (const std::string_view roles : {"WWRR", "WRRR", "WWWR"})
    check<rma::detail::mcs_writer_preference_lock>(roles, thorough ? 2 : 1);
}

TEST_CASE("groups of readers and writers exclude as they shall, in all interleavings") {
  for (const setting how : {setting{1, 1}, setting{2, 1}, setting{2, 2}, setting{3, 2}}) {
    check<rma::detail::rma_rw_lock>("WWR", 2, how);
    check<rma::detail::rma_rw_lock>("WRR", 2, how);
    check<rma::detail::rma_rw_lock>("WWW", 1, how);
  }
  check<rma::detail::rma_rw_lock>("WWRR", 2, {2, 2});
  check<rma::detail::rma_rw_lock>("WRWR", 2, {2, 2});
  check<rma::detail::rma_rw_lock>("WWWR", thorough ? 2 : 1, {2, 2});
  check<rma::detail::rma_rw_lock>("WRRR", 2, {1, 1});
}

TEST_CASE("tries take a lock or leave it as it was, in all interleavings") {
  check<rma::detail::gbh_lock>("wWR", 1);
  check<rma::detail::gbh_lock>("wrR", 2);
  check<rma::detail::d_mcs_lock>("wWW", 1);
  check<rma::detail::d_mcs_lock>("ww", 3);
  check<rma::detail::mcs_writer_preference_lock>("wWR", 2);
  check<rma::detail::mcs_writer_preference_lock>("wrW", 2);
  check<rma::detail::mcs_writer_preference_lock>("wWRR", 1);
  check<rma::detail::rma_rw_lock>("wWR", 1, {2, 2});
  check<rma::detail::rma_rw_lock>("wwr", 2, {1, 1});
  check<rma::detail::rma_rw_lock>("wWrR", 1, {2, 2});
}

TEST_CASE("locks of all targets exclude writers, in all interleavings") {
  check<rma::detail::gated_lock<rma::detail::mcs_writer_preference_lock>>("WWA", 2);
  check<rma::detail::gated_lock<rma::detail::mcs_writer_preference_lock>>("WAA", 2);
  check<rma::detail::gated_lock<rma::detail::mcs_writer_preference_lock>>("WRA", 2);
  check<rma::detail::gated_lock<rma::detail::mcs_writer_preference_lock>>("wWA", 1);
}

TEST_CASE("who may starve, and who may not") {
  using namespace rma::detail;
  // Two readers that overlap keep a writer out for ever, as two writers do a reader.
  schedule<gbh_lock> counters("RRW", {});
  counters.pass(0);
  int failures = 0;
  for (int i = 0; i < 1000; ++i) {
    counters.pass(1 - i % 2);  // the other one comes in
    for (int k = 0; k < 3; ++k) failures += !counters.step(2);
    counters.pass(i % 2);  // and the first one leaves
  }
  CHECK(failures == 3000);
  // Writers that hand over to each other keep readers out; writers are served in their order.
  CHECK(schedule<mcs_writer_preference_lock>("WWWR", {}).overtaken() == 1000);
  CHECK(schedule<mcs_writer_preference_lock>("RRRW", {}).overtaken() <= 3);
  CHECK(schedule<mcs_writer_preference_lock>("WWWW", {}).overtaken() <= 3);
  CHECK(schedule<d_mcs_lock>("WWWW", {}).overtaken() <= 3);
  // Nobody starves: a reader waits for the writers that follow each other, and not for another row of them.
  for (const int row : {1, 2, 8}) {
    CHECK(schedule<rma_rw_lock>("WWWWWWR", {7, row}).overtaken() == row - 1);
    CHECK(schedule<rma_rw_lock>("WWWWWWWR", {4, row}).overtaken() == row - 1);
    CHECK(schedule<rma_rw_lock>("RRRW", {2, row}).overtaken() <= 20);  // while it walks to the counters
    CHECK(schedule<rma_rw_lock>("WWWW", {2, row}).overtaken() <= 3 * row + 1);
  }
}
