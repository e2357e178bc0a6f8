// SPDX-License-Identifier: BSL-1.0
// Whatever std::async takes, fork and run take, and the function gets the same: each case is called both
// ways.
#include "flow/runtimes.hpp"

#include <array>
#include <concepts>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

using weft_test::on_each_runtime;

namespace {

struct counter {
  int value = 0;
  int add(int n) { return value += n; }
  int get() const { return value; }
  int plus(int n) const noexcept { return value + n; }
  int taken() && { return std::exchange(value, -1); }
  int overloaded() & { return 1; }
  int overloaded() && { return 2; }
  virtual int kind() const { return 1; }
  virtual ~counter() = default;
};
struct derived : counter {
  int kind() const override { return 2; }
};

/// Says how it was called.
struct categories {
  int operator()() & { return 1; }
  int operator()() const& { return 2; }
  int operator()() && { return 3; }
  int operator()() const&& { return 4; }
};

struct only_moved {
  std::unique_ptr<int> value;
  explicit only_moved(int v) : value(std::make_unique<int>(v)) {}
  int operator()() { return *value; }
  int operator()(std::unique_ptr<int> p) && { return *value + *p; }
};

int of_reference(int& n) { return ++n; }
int of_constant(const std::string& s) { return static_cast<int>(s.size()); }
int of_rvalue(std::string&& s) { return static_cast<int>(std::string(std::move(s)).size()); }
int of_text(const char* s) { return static_cast<int>(std::string_view(s).size()); }
int of_array(const int* a) { return a[0] + a[1]; }
int of_pointer(std::unique_ptr<int> p) { return *p; }
int of_function(int (*f)(int), int n) { return f(n); }
int twice(int n) { return 2 * n; }
int with_default(int a, int b = 5) { return a + b; }
template <class T>
T of_template(T v) {
  return v + v;
}
enum class colour { red = 7 };

/// Calls it by std::async, by fork and by run, on each runtime. `call(f)` calls f with what is to be called
/// and its arguments, made anew each time.
template <class Call>
void same(const char* what, Call call) {
  const auto expected = call(
      [](auto&&... a) { return std::async(std::launch::deferred, std::forward<decltype(a)>(a)...).get(); });
  on_each_runtime([&](weft::runtime& rt) {
    INFO(what);
    auto forked = expected;
    rt.run([&] {
      auto result = call([](auto&&... a) { return weft::fork(std::forward<decltype(a)>(a)...); });
      weft::sync();
      forked = result.get();
    });
    CHECK(forked == expected);
    CHECK(call([&](auto&&... a) { return rt.run(std::forward<decltype(a)>(a)...); }) == expected);
  });
}

}  // namespace

TEST_CASE("member functions, of objects, pointers and references") {
  counter object;
  derived other;
  same("of a copy", [](auto f) { return f(&counter::add, counter(), 3); });
  same("of an lvalue, copied", [&](auto f) { return f(&counter::plus, object, 3); });
  same("by pointer", [&](auto f) { return object.value = 0, f(&counter::add, &object, 4); });
  same("by pointer to const", [&](auto f) { return f(&counter::get, &std::as_const(object)); });
  same("by std::ref", [&](auto f) { return object.value = 0, f(&counter::add, std::ref(object), 5); });
  same("by std::cref", [&](auto f) { return f(&counter::plus, std::cref(object), 5); });
  same("by std::unique_ptr", [](auto f) { return f(&counter::add, std::make_unique<counter>(), 6); });
  same("by std::shared_ptr", [](auto f) { return f(&counter::add, std::make_shared<counter>(), 7); });
  same("for rvalues", [](auto f) { return f(&counter::taken, counter()); });
  same("of a base", [](auto f) { return f(&counter::plus, derived(), 8); });
  same("virtual", [&](auto f) { return f(&counter::kind, &other); });
  same("by std::mem_fn", [](auto f) { return f(std::mem_fn(&counter::add), counter(), 9); });
  same("overloaded",
       [](auto f) { return f(static_cast<int (counter::*)() &&>(&counter::overloaded), counter()); });
}

TEST_CASE("member objects") {  // by reference: std::async of this compiler's library takes no copy
  counter object;
  object.value = 11;
  same("by pointer", [&](auto f) { return f(&counter::value, &object); });
  same("by std::ref", [&](auto f) { return f(&counter::value, std::ref(object)); });
  const auto shared = std::make_shared<counter>();  // outlives what std::async returns, a reference
  same("by std::shared_ptr", [&](auto f) { return f(&counter::value, shared); });
}

TEST_CASE("function objects are called as rvalues, and may only be movable") {
  const categories constant;
  categories variable;
  same("an rvalue", [](auto f) { return f(categories()); });
  same("an lvalue, copied", [&](auto f) { return f(variable); });
  same("a constant, copied", [&](auto f) { return f(constant); });
  same("by std::ref", [&](auto f) { return f(std::ref(variable)); });
  same("by std::cref", [&](auto f) { return f(std::cref(variable)); });
  same("only moved", [](auto f) { return f(only_moved(12)); });
  same("only moved, with an argument", [](auto f) { return f(only_moved(1), std::make_unique<int>(2)); });
  same("a lambda that is only moved",
       [](auto f) { return f([p = std::make_unique<int>(13)] { return *p; }); });
  same("a mutable lambda", [](auto f) { return f([n = 1]() mutable { return ++n; }); });
  same("std::function", [](auto f) { return f(std::function<int(int)>(twice), 4); });
  same("std::bind_front", [](auto f) { return f(std::bind_front(&counter::plus, counter()), 4); });
  same("std::bind", [](auto f) { return f(std::bind(twice, std::placeholders::_1), 4); });
  same("std::plus", [](auto f) { return f(std::plus<>(), 4, 5L); });
  same("std::packaged_task", [](auto f) {
    std::packaged_task<int()> task([] { return 0; });
    std::future<int> value = task.get_future();
    return f([](std::packaged_task<int()> t) { return t(), 14; }, std::move(task));
  });
}

TEST_CASE("functions and what they take") {
  int n = 0;
  const std::string text = "lvalue";
  const int numbers[] = {3, 4};
  same("a reference", [&](auto f) { return n = 0, f(of_reference, std::ref(n)); });
  same("a constant from an rvalue", [](auto f) { return f(of_constant, std::string("abc")); });
  same("a constant from an lvalue", [&](auto f) { return f(of_constant, text); });
  same("a constant from a literal", [](auto f) { return f(of_constant, "literal"); });
  same("an rvalue from an lvalue, copied", [&](auto f) { return f(of_rvalue, text); });
  same("a literal", [](auto f) { return f(of_text, "literal"); });
  same("an array", [&](auto f) { return f(of_array, numbers); });
  same("what is only moved", [](auto f) { return f(of_pointer, std::make_unique<int>(15)); });
  same("nullptr", [](auto f) { return f([](const int* p) { return p == nullptr; }, nullptr); });
  same("a function", [](auto f) { return f(of_function, twice, 16); });
  same("a function by pointer", [](auto f) { return f(&of_function, &twice, 16); });
  same("a template", [](auto f) { return f(of_template<std::string>, "x"); });
  same("an enumeration", [](auto f) { return f([](colour c) { return static_cast<int>(c); }, colour::red); });
  same("all of its parameters", [](auto f) { return f(with_default, 1, 2); });
  same("a tuple", [](auto f) { return f([](auto t) { return std::get<1>(t); }, std::tuple(1, 2)); });
  same("a vector of what is only moved", [](auto f) {
    std::vector<std::unique_ptr<int>> all;
    all.push_back(std::make_unique<int>(17));
    return f([](std::vector<std::unique_ptr<int>> v) { return *v.front(); }, std::move(all));
  });
}

TEST_CASE("generic lambdas get rvalues of the copies") {
  const std::string constant = "constant";
  std::string variable = "variable";
  int n = 1;
  const auto category = []<class T>(T&&) {
    return std::is_lvalue_reference_v<T> ? 1 : std::is_const_v<std::remove_reference_t<T>> ? 2 : 3;
  };
  same("of an rvalue", [&](auto f) { return f(category, 1); });
  same("of an lvalue", [&](auto f) { return f(category, variable); });
  same("of a constant", [&](auto f) { return f(category, constant); });
  same("of a literal", [&](auto f) { return f([](auto s) { return std::string_view(s).size(); }, "abc"); });
  same("of a reference_wrapper", [&](auto f) {
    return f([]<class T>(T) { return std::is_same_v<T, std::reference_wrapper<int>>; }, std::ref(n));
  });
  same("of a pack", [](auto f) { return f([](auto... v) { return (v + ... + 0); }, 1, 2, 3); });
  same("of nothing", [](auto f) { return f([](auto... v) { return sizeof...(v); }); });
  same("with a concept", [](auto f) { return f([](std::integral auto v) { return v; }, 'a'); });
  same("recursive", [](auto f) {
    return f([](auto self, int k) -> int { return k == 0 ? 0 : k + self(self, k - 1); },
             [](auto self, int k) -> int { return k == 0 ? 0 : k + self(self, k - 1); }, 4);
  });
}

TEST_CASE("results that are only moved, references, and more") {
  on_each_runtime([](weft::runtime& rt) {
    CHECK(*rt.run([] { return std::make_unique<int>(18); }) == 18);
    int n = 19;
    std::vector<bool> flags;
    rt.run([&] {
      auto pointer = weft::fork([] { return std::make_unique<int>(18); });
      auto copy =
          weft::fork([&]() -> int& { return n; });  // of the value, since the object may not live as long
      auto constant = weft::fork([]() -> const std::string { return "x"; });
      weft::sync();
      flags = {*pointer.get() == 18, copy.get() == 19, constant.get() == "x"};
    });
    CHECK(flags == std::vector<bool>(3, true));
  });
}
