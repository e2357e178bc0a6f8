// SPDX-License-Identifier: BSL-1.0
// A program that does not scale, and what its traces led to: docs/how-to/find-out-why-it-does-not-scale.md.
// prints: steps of 400000 numbers, as the first, second and third program count them: the same
//
// With an argument, first, second or third, only that one is executed.
#include <weft/weft.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

namespace {

constexpr std::size_t numbers = 400'000, part = 2'000;
using table = std::vector<std::uint32_t>;

/// A number that looks random.
std::uint32_t make(std::uint64_t i) {
  for (int round = 0; round < 30; ++round) i = (i ^ i >> 29) * 0x9E37'79B9'7F4A'7C15u + 1;
  return static_cast<std::uint32_t>(i % 1'000'000 + 1);
}

/// How often the numbers of a part are halved, or tripled and increased, until all are 1.
long count(const table& t, std::size_t from) {
  long steps = 0;
  for (std::size_t i = from; i < from + part; ++i)
    for (std::uint64_t n = t[i]; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

void fill(table& t) {
  t.resize(numbers);
  for (std::size_t i = 0; i < numbers; ++i) t[i] = make(i);
}

void first(weft::update<table> t, weft::update<long> total) {
  weft::fork({.name = "fill"}, fill, weft::write(t));
  for (std::size_t i = 0; i < numbers; i += part)
    weft::fork(
        {.name = "count"}, [i](const table& of, long& sum) { sum += count(of, i); }, weft::read(t),
        weft::update(total));
}

void second(weft::update<table> t, weft::update<long> total) {
  weft::fork({.name = "fill"}, fill, weft::write(t));
  for (std::size_t i = 0; i < numbers; i += part)
    weft::fork(
        {.name = "count"}, [i](const table& of, auto sum) { sum += count(of, i); }, weft::read(t),
        weft::reduce(total, std::plus<>{}));
}

void third(weft::update<table> t, weft::update<long> total) {
  weft::fork(
      {.name = "fill"},
      [](table& all) {
        all.resize(numbers);
        weft::fork_for({.name = "fill part", .grain = 1000}, std::size_t{0}, numbers,
                       [&all](std::size_t i) { all[i] = make(i); });
        weft::sync();
      },
      weft::write(t));
  for (std::size_t i = 0; i < numbers; i += part)
    weft::fork(
        {.name = "count"}, [i](const table& of, auto sum) { sum += count(of, i); }, weft::read(t),
        weft::reduce(total, std::plus<>{}));
}

long result(const char* name, void (*program)(weft::update<table>, weft::update<long>), const char* only) {
  if (only != nullptr && std::strcmp(only, name) != 0) return 0;
  weft::runtime rt({.workers = 2});
  weft::shared<table> t;
  weft::shared<long> total(0);
  rt.run(program, t, total);
  return total.get();
}

}  // namespace

int main(int argc, char** argv) {
  const char* const only = argc > 1 ? argv[1] : nullptr;
  const long a = result("first", first, only), b = result("second", second, only),
             c = result("third", third, only);
  if (only != nullptr) {
    std::printf("%ld steps\n", a + b + c);
    return 0;
  }
  std::printf("steps of %zu numbers, as the first, second and third program count them: %s\n", numbers,
              a == b && b == c ? "the same" : "different");
  return a == b && b == c ? 0 : 1;
}
