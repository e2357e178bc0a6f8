// SPDX-License-Identifier: BSL-1.0
// Small programs, some with a race between tasks, for Thread Sanitizer where only declared accesses order
// anything.
//
// usage: planted              prints the number of programs, and for each whether it has a race
//        planted I WORKERS    runs one
#include <weft/weft.hpp>
#include <weft/worker_local.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using weft::borrow;
using weft::fork;
using weft::shared;

long global = 0;
void touch() { ++global; }
long look() { return global; }

struct program {
  bool race;
  const char* what;
  void (*body)(weft::runtime& rt);
};

const program programs[] = {
    {true, "two tasks change a global",
     [](weft::runtime& rt) {
       rt.run([] {
         fork(touch);
         fork(touch);
       });
     }},
    {false, "two tasks change it through a right",
     [](weft::runtime& rt) {
       rt.run([] {
         fork([](long& v) { ++v; }, weft::update(borrow(global)));
         fork([](long& v) { ++v; }, weft::update(borrow(global)));
       });
     }},
    {true, "a body changes what its child changes",
     [](weft::runtime& rt) {
       rt.run([] {
         fork(touch);
         touch();
       });
     }},
    {false, "a body changes it after sync",
     [](weft::runtime& rt) {
       rt.run([] {
         fork(touch);
         weft::sync();
         touch();
       });
     }},
    {false, "a body changes it before the fork",
     [](weft::runtime& rt) {
       rt.run([] {
         touch();
         fork(touch);
       });
     }},
    {true, "a body reads what its child changes",
     [](weft::runtime& rt) {
       rt.run([] {
         fork(touch);
         if (look() == 77) std::puts("77");
       });
     }},
    {true, "one reads and one changes",
     [](weft::runtime& rt) {
       rt.run([] {
         fork([] {
           if (look() == 77) std::puts("77");
         });
         fork(touch);
       });
     }},
    {false, "two read",
     [](weft::runtime& rt) {
       rt.run([] {
         for (int i = 0; i < 2; ++i)
           fork([] {
             if (look() == 77) std::puts("77");
           });
       });
     }},
    {true, "rights on different objects",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<int> a(0), b(0);
         fork([](int&) { touch(); }, weft::update(a));
         fork([](int&) { touch(); }, weft::update(b));
       });
     }},
    {false, "rights on one object",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<int> a(0);
         fork([](int&) { touch(); }, weft::update(a));
         fork([](int&) { touch(); }, weft::update(a));
       });
     }},
    {true, "two readers of one object",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<int> a(0);
         fork([](int) { touch(); }, weft::read(a));
         fork([](int) { touch(); }, weft::read(a));
       });
     }},
    {false, "a writer, and a reader behind it",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<int> a(0);
         fork(
             [](int& v) {
               touch();
               v = 1;
             },
             weft::update(a));
         fork([](int) { touch(); }, weft::read(a));
       });
     }},
    {true, "a captured local",
     [](weft::runtime& rt) {
       rt.run([] {
         long sum = 0;
         for (int i = 0; i < 3; ++i) fork([&sum, i] { sum += i; });
         weft::sync();
       });
     }},
    {false, "a captured local with a right",
     [](weft::runtime& rt) {
       rt.run([] {
         long sum = 0;
         for (int i = 0; i < 3; ++i) fork([i](long& s) { s += i; }, weft::update(borrow(sum)));
         weft::sync();
       });
     }},
    {true, "an element of a vector",
     [](weft::runtime& rt) {
       std::vector<long> v(10);
       rt.run([&] {
         for (std::size_t i = 0; i < 9; ++i)
           fork([&v, i](long& x) { x += v[i + 1]; }, weft::update(borrow(v[i])));
       });
     }},
    {false, "elements of a vector with rights",
     [](weft::runtime& rt) {
       std::vector<long> v(10);
       rt.run([&] {
         for (std::size_t i = 0; i < 9; ++i)
           fork([](long& x, long y) { x += y; }, weft::update(borrow(v[i])), weft::read(borrow(v[i + 1])));
       });
     }},
    {true, "a vector that grows",
     [](weft::runtime& rt) {
       std::vector<long> v;
       rt.run([&] {
         fork([&v] { v.push_back(1); });
         fork([&v] { v.push_back(2); });
       });
     }},
    {true, "a number on the heap",
     [](weft::runtime& rt) {
       const auto number = std::make_unique<long>(1);
       rt.run([&] {
         fork([n = number.get()] { *n += 2; });
         fork([n = number.get()] { *n += 3; });
       });
     }},
    {true, "a grandchild and a child",
     [](weft::runtime& rt) {
       rt.run([] {
         fork([] { fork(touch); });
         fork(touch);
       });
     }},
    {false, "a grandchild, then sync",
     [](weft::runtime& rt) {
       rt.run([] {
         fork([] { fork(touch); });
         weft::sync();
         touch();
       });
     }},
    {true, "a child of a task that ended before one that waits for the task",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<int> a(0);
         fork([](weft::update<int>) { fork(touch); }, a);
         fork([](int&) { touch(); }, weft::update(a));
       });
     }},
    {false, "the same, where the child has the right too",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<int> a(0);
         fork([](weft::update<int> r) { fork([](int&) { touch(); }, weft::update<int>(r)); }, a);
         fork([](int&) { touch(); }, weft::update(a));
       });
     }},
    {true, "contributors of one object",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<long> sum(0L);
         for (int i = 0; i < 2; ++i)
           fork(
               [](auto t) {
                 touch();
                 t += 1L;
               },
               weft::reduce(sum, std::plus<>{}));
       });
     }},
    {false, "contributions, and a reader behind them",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<long> sum(0L);
         for (int i = 0; i < 3; ++i) fork([](auto t) { t += 1L; }, weft::reduce(sum, std::plus<>{}));
         fork([](long s) { global = s; }, weft::read(sum));
       });
     }},
    {false, "tasks that commute",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<long> sum(0L);
         for (int i = 0; i < 3; ++i)
           fork(
               [](long& s) {
                 ++s;
                 touch();
               },
               weft::commute(sum));
       });
     }},
    {true, "parts of an array that do not overlap",
     [](weft::runtime& rt) {
       weft::shared_array<long> a(10);
       rt.run([&] {
         fork([](std::span<long>) { touch(); }, weft::update(a.slice(0, 5)));
         fork([](std::span<long>) { touch(); }, weft::update(a.slice(5, 5)));
       });
     }},
    {false, "parts of an array that overlap",
     [](weft::runtime& rt) {
       weft::shared_array<long> a(10);
       rt.run([&] {
         fork([](std::span<long>) { touch(); }, weft::update(a.slice(0, 6)));
         fork([](std::span<long>) { touch(); }, weft::update(a.slice(5, 5)));
       });
     }},
    {true, "children of weak tasks",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<int> a(0), b(0);
         fork([](weft::weak_update<int> w) { fork([](int&) { touch(); }, weft::update(w)); },
              weft::weak_update(a));
         fork([](weft::weak_update<int> w) { fork([](int&) { touch(); }, weft::update(w)); },
              weft::weak_update(b));
       });
     }},
    {false, "children of weak tasks on one object",
     [](weft::runtime& rt) {
       rt.run([] {
         shared<int> a(0);
         for (int i = 0; i < 2; ++i)
           fork([](weft::weak_update<int> w) { fork([](int&) { touch(); }, weft::update(w)); },
                weft::weak_update(a));
       });
     }},
    {true, "a result that somebody else writes to",
     [](weft::runtime& rt) {
       rt.run([] {
         auto r = fork([] {
           touch();
           return 1;
         });
         fork([](int) {}, weft::read(r));
         fork(touch);
       });
     }},
    {false, "a result and its reader",
     [](weft::runtime& rt) {
       rt.run([] {
         auto r = fork([] {
           touch();
           return 1;
         });
         fork([](int) { touch(); }, weft::read(r));
       });
     }},
    {true, "tasks of one list of rights and of another",
     [](weft::runtime& rt) {
       std::array<long, 4> d{};
       rt.run([&] {
         for (std::size_t i = 0; i < 4; i += 2)
           fork([](std::vector<weft::update<long>>) { touch(); },
                std::vector<weft::update<long>>{weft::update(borrow(d[i])), weft::update(borrow(d[i + 1]))});
       });
     }},
    {false, "tasks of lists that meet",
     [](weft::runtime& rt) {
       std::array<long, 4> d{};
       rt.run([&] {
         for (std::size_t i = 0; i < 3; ++i)
           fork([](std::vector<weft::update<long>>) { touch(); },
                std::vector<weft::update<long>>{weft::update(borrow(d[i])), weft::update(borrow(d[i + 1]))});
       });
     }},
    {true, "tasks behind an exception that is caught",
     [](weft::runtime& rt) {
       rt.run([] {
         try {
           fork(touch);
           fork([] { throw 1; });
           touch();
           weft::sync();
         } catch (int) {
         }
       });
     }},
    {false, "what is done when the exception has been caught",
     [](weft::runtime& rt) {
       rt.run([] {
         try {
           fork(touch);
           fork([] { throw 1; });
           weft::sync();
         } catch (int) {
           touch();
         }
       });
     }},
    {true, "a run inside a task, and a sibling",
     [](weft::runtime& rt) {
       rt.run([&rt] {
         fork([&rt] { rt.run(touch); });
         fork(touch);
       });
     }},
    {false, "a run inside a task, and what follows it",
     [](weft::runtime& rt) {
       rt.run([&rt] {
         touch();
         rt.run(touch);
         touch();
       });
     }},
    {false, "runs one after the other",
     [](weft::runtime& rt) {
       for (int i = 0; i < 3; ++i) {
         rt.run([] { fork(touch); });
         touch();
       }
     }},
    {false, "holders of an ordered lock",
     [](weft::runtime& rt) {
       weft::orwl::location<int> l(0);
       weft::orwl::handle<int> h[2];
       for (auto& one : h) one.request_write(l);
       rt.run([&] {
         for (auto& one : h)
           fork([&one] {
             const weft::orwl::section turn(one);
             touch();
           });
       });
     }},
    {true, "readers of an ordered lock",
     [](weft::runtime& rt) {
       weft::orwl::location<int> l(0);
       weft::orwl::handle<int> h[2];
       for (auto& one : h) one.request_read(l);
       rt.run([&] {
         for (auto& one : h)
           fork([&one] {
             const weft::orwl::section turn(one);
             touch();
           });
       });
     }},
    {false, "turns of an overlay that share a location",
     [](weft::runtime& rt) {
       touch();
       weft::orwl::location<int> l(0), other(0);
       weft::orwl::overlay o;
       o.task([](int&) { touch(); }, weft::orwl::write(l));
       o.task([](const int&, int&) { touch(); }, weft::orwl::read(l), weft::orwl::write(other));
       o.schedule();
       o.run(rt, 5);
       touch();
     }},
    {true, "turns of an overlay that share nothing",
     [](weft::runtime& rt) {
       weft::orwl::location<int> l(0), other(0);
       weft::orwl::overlay o;
       o.task([](int&) { touch(); }, weft::orwl::write(l));
       o.task([](int&) { touch(); }, weft::orwl::write(other));
       o.schedule();
       o.run(rt, 5);
     }},
    {false, "an event from another thread",
     [](weft::runtime& rt) {
       std::thread outside;
       long buffer = 0;
       rt.run([&] {
         fork(
             {.event = true},
             [&](long& b) {
               outside = std::thread([&b, done = weft::this_task::hold()]() mutable {
                 b = 5;
                 done.complete();
               });
             },
             weft::update(borrow(buffer)));
         fork([](long b) { global = b; }, weft::read(borrow(buffer)));
       });
       outside.join();
     }},
    {true, "an event, and a task that does not wait for it",
     [](weft::runtime& rt) {
       std::thread outside;
       shared<int> a(0);
       rt.run([&] {
         fork([] { touch(); });
         fork(
             {.event = true},
             [&](int&) { outside = std::thread([done = weft::this_task::hold()]() mutable { touch(); }); },
             weft::update(a));
       });
       outside.join();
     }},
    {false, "stack and objects that are used again",
     [](weft::runtime& rt) {
       const std::function<long(long)> sum = [&sum](long n) -> long {
         if (n == 0) return 1;
         shared<long> a, b;
         fork([&sum, n](long& v) { v = sum(n - 1); }, weft::write(a));
         fork([&sum, n](long& v) { v = sum(n - 1); }, weft::write(b));
         weft::sync();
         return a.get() + b.get();
       };
       if (rt.run([&] { return sum(6); }) != 64) std::abort();
     }},
    {true, "iterations of a loop change a global",
     [](weft::runtime& rt) { rt.run([] { weft::fork_for(0, 3, [](int) { touch(); }); }); }},
    {true, "a body changes what its loop changes",
     [](weft::runtime& rt) {
       rt.run([] {
         weft::fork_for(0, 1, [](int) { touch(); });
         touch();
       });
     }},
    {false, "iterations of a loop contribute, and change elements of their own",
     [](weft::runtime& rt) {
       std::array<long, 8> row{};
       shared<long> sum(0L);
       rt.run(
           [&row](weft::update<long> s) {
             weft::fork_for(
                 std::size_t{0}, row.size(),
                 [&row](std::size_t i, auto to) {
                   row[i] = 1;
                   to += row[i];
                 },
                 weft::reduce(s, std::plus<>{}));
             weft::sync();
             weft::fork_for(std::size_t{0}, row.size(), [&row](std::size_t i, long& v) { v += row[i]; }, s);
           },
           sum);
       if (sum.get() != 16) std::abort();
     }},
    {false, "bodies use the object of their worker",
     [](weft::runtime& rt) {
       weft::worker_local<long> counts([] { return 0L; });
       rt.run([&] {
         for (int i = 0; i < 8; ++i) fork([&] { counts.use([](long& n) { ++n; }); });
       });
       if (counts.combine(std::plus<>{}) != 8) std::abort();
     }},
    {true, "one body changes a global while it uses the object of its worker, one without",
     [](weft::runtime& rt) {
       weft::worker_local<long> counts([] { return 0L; });
       rt.run([&] {
         fork([&] { counts.use([](long&) { touch(); }); });
         fork(touch);
       });
     }},
    {false, "a graph that is repeated",
     [](weft::runtime& rt) {
       std::array<long, 6> row{};
       rt.run([&] {
         weft::recorded step;
         for (int k = 0; k < 4; ++k)
           step([&] {
             for (std::size_t i = 1; i < row.size(); ++i)
               fork([](long l, long& v) { v += l + 1; }, weft::read(borrow(row[i - 1])),
                    weft::update(borrow(row[i])));
           });
       });
     }},
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    for (const program& p : programs) std::printf("%s %s\n", p.race ? "race" : "none", p.what);
    return 0;
  }
  weft::runtime rt({.workers = static_cast<unsigned>(std::atoi(words[2]))});
  programs[std::atoi(words[1])].body(rt);
  return 0;
}
