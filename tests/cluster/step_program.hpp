// SPDX-License-Identifier: BSL-1.0
// Random steps as data: how they are forked over shared objects, and what a serial interpreter makes of them.
#pragma once

#include <weft/weft.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft_test {

/// What happens in one task of a step: to numbers, to texts, or to both. `a`, `b` and `c` name objects.
struct step_action {
  enum class kind { combine, replace, append, exchange, branch, count_down } what;
  unsigned a, b, c;
  std::uint64_t constant;
};

struct step_program {
  unsigned numbers, texts;
  std::vector<step_action> actions;
};

/// The values that a step works on.
struct step_values {
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> texts;
  bool operator==(const step_values&) const = default;
};

struct step_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return (a ^ (b << 7 | b >> 57)) * 0x9E3779B97F4A7C15ull + 1;
}
inline std::string letter(std::uint64_t n) { return std::string(1, static_cast<char>('a' + n % 26)); }
/// Not commutative, and never longer than some letters.
struct shorten {
  std::string operator()(std::string s, const std::string& t) const {
    s += t;
    return s.size() > 40 ? s.substr(s.size() - 20) : s;
  }
};

/// `failing`: how many of the actions count down, and throw at zero.
inline step_program random_step(std::uint32_t seed, unsigned tasks, unsigned failing = 0) {
  std::minstd_rand random(seed);
  const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
  step_program p{4 + below(10), 1 + below(4), {}};
  for (unsigned t = 0; t < tasks; ++t) {
    const unsigned first = below(p.numbers), gap = 1 + below(p.numbers / 3);
    step_action a{static_cast<step_action::kind>(below(5)), first, (first + gap) % p.numbers,
                  (first + 2 * gap) % p.numbers, random()};
    if (a.what == step_action::kind::append || a.what == step_action::kind::exchange) a.b = below(p.texts);
    p.actions.push_back(a);
  }
  for (unsigned f = 0; f < failing; ++f) {
    step_action& a = p.actions[below(tasks)];
    if (a.what == step_action::kind::count_down) continue;
    a.what = step_action::kind::count_down;
    a.a = p.numbers++;  // a number of its own
    a.constant = 1 + below(12);
  }
  return p;
}
inline step_values first_values(const step_program& p) {
  step_values v;
  for (unsigned i = 0; i < p.numbers; ++i) v.numbers.push_back(i * 77 + 5);
  for (unsigned i = 0; i < p.texts; ++i) v.texts.push_back(letter(i));
  for (const step_action& a : p.actions)
    if (a.what == step_action::kind::count_down) v.numbers[a.a] = a.constant;
  return v;
}

/// *Throws*: step_failure, with the number of the action.
inline void interpret(const step_program& p, step_values& v) {
  for (unsigned t = 0; t < p.actions.size(); ++t) {
    const step_action& a = p.actions[t];
    switch (a.what) {
      case step_action::kind::combine:
        v.numbers[a.c] = mix(v.numbers[a.c], v.numbers[a.a] + v.numbers[a.b] + a.constant);
        break;
      case step_action::kind::replace:
        v.numbers[a.c] = mix(v.numbers[a.a], a.constant);
        break;
      case step_action::kind::append:
        v.texts[a.b] = shorten()(v.texts[a.b], letter(v.numbers[a.a]));
        break;
      case step_action::kind::exchange: {
        std::string& s = v.texts[a.b];
        s = letter(a.constant) + s.substr(0, 30);
        break;
      }
      case step_action::kind::branch:
        for (unsigned i = 0; i < 3; ++i) v.numbers[a.c] = mix(v.numbers[a.c], a.constant + i);
        break;
      case step_action::kind::count_down:
        if (--v.numbers[a.a] == 0) throw step_failure("action " + std::to_string(t));
        v.numbers[a.c] = mix(v.numbers[a.c], t);
        break;
    }
  }
}

/// The objects of one process.
class step_objects {
 public:
  explicit step_objects(const step_program& p) : program_(p) {
    const step_values v = first_values(p);
    for (const std::uint64_t n : v.numbers)
      numbers_.push_back(std::make_unique<weft::shared<std::uint64_t>>(n));
    for (const std::string& t : v.texts) texts_.push_back(std::make_unique<weft::shared<std::string>>(t));
  }
  /// Forks a step.
  void fork() {
    using weft::read, weft::reduce, weft::update, weft::write;
    for (unsigned t = 0; t < program_.actions.size(); ++t) {
      const step_action& a = program_.actions[t];
      const std::uint64_t k = a.constant;
      switch (a.what) {
        case step_action::kind::combine:
          weft::fork([k](std::uint64_t x, std::uint64_t y, std::uint64_t& to) { to = mix(to, x + y + k); },
                     read(number_(a.a)), read(number_(a.b)), update(number_(a.c)));
          break;
        case step_action::kind::replace:
          weft::fork([k](std::uint64_t from, std::uint64_t& to) { to = mix(from, k); }, read(number_(a.a)),
                     write(number_(a.c)));
          break;
        case step_action::kind::append:
          weft::fork([](std::uint64_t n, reduce<std::string, shorten> all) { all += letter(n); },
                     read(number_(a.a)), reduce(*texts_[a.b], shorten()));
          break;
        case step_action::kind::exchange:
          weft::fork([k](std::string& s) { s = letter(k) + s.substr(0, 30); }, update(*texts_[a.b]));
          break;
        case step_action::kind::branch:
          weft::fork(&branch_, k, number_(a.c));
          break;
        case step_action::kind::count_down:
          weft::fork(
              [t](std::uint64_t& n, std::uint64_t& m) {
                if (--n == 0) throw step_failure("action " + std::to_string(t));
                m = mix(m, t);
              },
              update(number_(a.a)), update(number_(a.c)));
          break;
      }
    }
  }
  step_values values() const {
    step_values v;
    for (const auto& n : numbers_) v.numbers.push_back(n->get());
    for (const auto& t : texts_) v.texts.push_back(t->get());
    return v;
  }

 private:
  weft::shared<std::uint64_t>& number_(unsigned i) { return *numbers_[i]; }
  static void branch_(std::uint64_t k, weft::update<std::uint64_t> n) {
    for (unsigned i = 0; i < 3; ++i)
      weft::fork([k, i](std::uint64_t& m) { m = mix(m, k + i); }, weft::update(n));
  }

  const step_program& program_;
  std::vector<std::unique_ptr<weft::shared<std::uint64_t>>> numbers_;
  std::vector<std::unique_ptr<weft::shared<std::string>>> texts_;
};

}  // namespace weft_test
