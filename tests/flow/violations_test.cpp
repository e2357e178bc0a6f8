// SPDX-License-Identifier: BSL-1.0
// Violated contracts end the program with a sentence that says what to do; each in a child process.
#include "flow/runtimes.hpp"
#include "support/child.hpp"

#include <atomic>
#include <cstdio>
#include <functional>
#include <string>

using weft_test::contains;

namespace {

/// What f says before it aborts.
template <class F>
std::string last_words(F&& f) {
  const auto child = weft_test::run_in_child(std::forward<F>(f));
  CHECK(child.aborted());
  return child.output;
}

/// The same for f in a task.
template <class F>
std::string last_words_in_task(const weft::runtime_options& o, F&& f) {
  return last_words([&] {
    weft::runtime rt(o);
    rt.run(f);
  });
}

struct not_trivial {
  std::string text;
};

struct no_default {
  explicit no_default(int v) : value(v) {}
  int value;
};

}  // namespace

TEST_CASE("fork, sync and this_task outside a task") {
  CHECK_THAT(last_words([] { weft::fork([] {}); }), contains("weft: fork() was called outside a task"));
  CHECK_THAT(last_words([] { weft::fork([] { return 1; }); }),
             contains("weft: fork() was called outside a task"));
  CHECK_THAT(last_words([] { weft::fork({.name = "x"}, [](int) {}, 1); }),
             contains("weft: fork() was called outside a task"));
  CHECK_THAT(last_words([] { weft::sync(); }), contains("weft: sync() was called outside a task"));
  CHECK_THAT(last_words([] { weft::this_task::stop_token(); }),
             contains("weft::this_task was asked outside a task"));
  CHECK_THAT(last_words([] { weft::this_task::request_stop(); }),
             contains("weft::this_task was asked outside a task"));
}

TEST_CASE("hold outside a task, and in one that was not forked for it") {
  CHECK_THAT(last_words([] { static_cast<void>(weft::this_task::hold()); }),
             contains("weft: this_task::hold() was called outside a task"));
  const char* const sentence = "weft: this_task::hold() needs a task that was forked with the option event";
  for (const auto& options : {weft_test::alone_and_inlining(), weft_test::two_and_deferring()}) {
    const auto hold = [] { static_cast<void>(weft::this_task::hold()); };
    CHECK_THAT(last_words_in_task(options, hold), contains(sentence));
    CHECK_THAT(last_words_in_task(options, [&] { weft::fork({.name = "x"}, hold); }), contains(sentence));
  }
}

TEST_CASE("a contribution where the right to it was named") {
  CHECK_THAT(last_words([] {
               weft::shared<long> x(0L);
               const weft::reduce right(x, std::plus<>{});
               right += 1L;
             }),
             contains("weft: a right to contribute was used where it was named"));
}

TEST_CASE("get of an object that has no value yet") {
  const auto plain = [] {
    weft::shared<int> x;
    std::printf("%d", x.get());
  };
  const auto with_constructor = [] {
    weft::shared<std::string> x;
    std::printf("%s", x.get().c_str());
  };
  const auto only_read = [] {
    weft::shared<int> x;
    weft::fork([](const int&) {}, weft::read(x));
    weft::sync();
    std::printf("%d", x.get());
  };
  const char* const sentence = "weft: get() of a shared object that has no value yet";
  CHECK_THAT(last_words(plain), contains(sentence));
  CHECK_THAT(last_words(with_constructor), contains(sentence));
  CHECK_THAT(last_words_in_task(weft_test::alone_and_inlining(), plain), contains(sentence));
  CHECK_THAT(last_words_in_task(weft_test::alone_and_deferring(), with_constructor), contains(sentence));
  CHECK_THAT(last_words_in_task(weft_test::alone_and_inlining(), only_read), contains(sentence));
}

TEST_CASE("get of a result before sync") {
  for (const auto& options : {weft_test::alone_and_deferring(), weft_test::two_and_deferring()}) {
    CHECK_THAT(last_words_in_task(options,
                                  [] {
                                    std::atomic<bool> go{false};
                                    auto r = weft::fork([&] {
                                      weft_test::wait_until([&] { return go.load(); });
                                      return 1;
                                    });
                                    std::printf("%d", r.get());
                                  }),
               contains("sync()"));
    CHECK_THAT(last_words_in_task(options,
                                  [] {
                                    std::atomic<bool> go{false};
                                    auto r = weft::fork([&] {
                                      weft_test::wait_until([&] { return go.load(); });
                                      return not_trivial{"x"};
                                    });
                                    std::printf("%s", r.get().text.c_str());
                                  }),
               contains("sync()"));
  }
}

TEST_CASE("get of the result of a task that threw or was dropped") {
  for (const auto& options : {weft_test::alone_and_inlining(), weft_test::alone_and_deferring()})
    for (const bool of_dropped : {false, true})
      for (const bool trivial : {false, true})
        CHECK_THAT(last_words_in_task(options,
                                      [=] {
                                        auto a = weft::fork([]() -> int { throw 1; });
                                        auto b = weft::fork([] { return 2; });
                                        auto c = weft::fork([]() -> not_trivial { throw 1; });
                                        auto d = weft::fork([] { return not_trivial{"d"}; });
                                        try {
                                          weft::sync();
                                        } catch (int) {
                                        }
                                        if (trivial)
                                          std::printf("%d", of_dropped ? b.get() : a.get());
                                        else
                                          std::printf("%s", (of_dropped ? d : c).get().text.c_str());
                                      }),
                   contains("weft: get() of a task's result"));
}
