// SPDX-License-Identifier: BSL-1.0
// The locks in all interleavings: the very steps that processes execute, with words that a search saves and
// restores. No two exclude each other in vain, none waits for ever, and all words are as before at the end.
#include "support/catch.hpp"

#include <weft/rma/detail/gbh_lock.hpp>
#include <weft/rma/detail/mcs_locks.hpp>

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

/// What a process does: locks target 0 in one way and unlocks it, so many times.
enum class role : char { writer = 'W', reader = 'R', all = 'A' };

/// What a lock of some kind is made of; a process is between two of them outside or inside.
template <class Lock>
struct parts;
template <>
struct parts<rma::detail::gbh_lock> {
  static constexpr std::uint32_t zero_when_free[] = {rma::detail::gbh_lock::window_word,
                                                     rma::detail::gbh_lock::target_word};
  using machine =
      std::variant<std::monostate, rma::detail::gbh_lock::exclusive, rma::detail::gbh_lock::exclusive_release,
                   rma::detail::gbh_lock::shared, rma::detail::gbh_lock::shared_release,
                   rma::detail::gbh_lock::shared_all, rma::detail::gbh_lock::shared_all_release>;
  static machine acquire(role r) {
    if (r == role::writer) return rma::detail::gbh_lock::exclusive(0, false);
    if (r == role::reader) return rma::detail::gbh_lock::shared(0);
    return rma::detail::gbh_lock::shared_all();
  }
  static machine release(role r) {
    if (r == role::writer) return rma::detail::gbh_lock::exclusive_release(0, false);
    if (r == role::reader) return rma::detail::gbh_lock::shared_release(0);
    return rma::detail::gbh_lock::shared_all_release();
  }
};
template <>
struct parts<rma::detail::mcs_writer_preference_lock> {
  using lock = rma::detail::mcs_writer_preference_lock;
  static constexpr std::uint32_t zero_when_free[] = {lock::tail, lock::top, lock::state};
  using machine = std::variant<std::monostate, lock::exclusive, lock::exclusive_release, lock::shared,
                               lock::shared_release>;
  static machine acquire(role r) {
    if (r == role::writer) return lock::exclusive(0);
    return lock::shared(0);
  }
  static machine release(role r) {
    if (r == role::writer) return lock::exclusive_release(0);
    return lock::shared_release(0);
  }
};
template <>
struct parts<rma::detail::d_mcs_lock> {
  using lock = rma::detail::d_mcs_lock;
  static constexpr std::uint32_t zero_when_free[] = {lock::tail};
  using machine = std::variant<std::monostate, lock::exclusive, lock::exclusive_release>;
  static machine acquire(role) { return lock::exclusive(0); }
  static machine release(role) { return lock::exclusive_release(0); }
};

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
  std::size_t states = 0, exclusion = 0, deadlocks = 0, unclean = 0, ends = 0;
  bool one_operation = true;  // in each step, at most
};

/// Goes through all states.
template <class Lock>
class search {
  using machine = typename parts<Lock>::machine;
  struct actor {
    machine now;  // nothing: outside
    int rounds_left;
    bool inside = false, entering = false;
  };
  struct state {
    std::vector<std::uint64_t> words;
    std::vector<actor> actors;
  };

 public:
  search(std::string_view roles, int rounds)
      : roles_(roles), each_(Lock::words(static_cast<int>(roles.size()))) {
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
        a.now = a.inside ? parts<Lock>::release(role_(i)) : parts<Lock>::acquire(role_(i));
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
      if (p == rma::progress::done) {
        if (a.entering)
          a.inside = true, check_exclusion_(next);
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
      // A process may leave its place in a queue as it is; the words of the lock are those of a free one.
      for (const std::uint32_t i : parts<Lock>::zero_when_free)
        if (s.words[i] != 0) {
          ++found.unclean;
          break;
        }
    } else if (!moves) {
      ++found.deadlocks;
    }
  }
  void check_exclusion_(const state& s) {
    int writers = 0, others = 0;
    for (std::size_t i = 0; i < s.actors.size(); ++i)
      if (s.actors[i].inside) (role_(i) == role::writer ? writers : others) += 1;
    if (writers > 1 || (writers == 1 && others != 0)) ++found.exclusion;
  }

  std::string_view roles_;
  std::uint32_t each_;
  std::unordered_set<std::uint64_t> known_;
  std::vector<state> open_;
};

template <class Lock>
void check(std::string_view roles, int rounds) {
  const findings f = search<Lock>(roles, rounds).found;
  INFO(roles << " x " << rounds << ": " << f.states << " states, " << f.ends << " ends");
  CHECK(f.exclusion == 0);
  CHECK(f.deadlocks == 0);
  CHECK(f.unclean == 0);
  CHECK(f.ends > 0);
  CHECK(f.states > 100);
  CHECK(f.one_operation);
}

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
  check<rma::detail::mcs_writer_preference_lock>("WWRR", 1);
  check<rma::detail::mcs_writer_preference_lock>("WRRR", 1);
  check<rma::detail::mcs_writer_preference_lock>("WWWR", 1);
}
