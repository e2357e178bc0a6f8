// SPDX-License-Identifier: BSL-1.0
// Which types travel between processes, and that their values, and exceptions, come out as they went in.
#include "support/catch.hpp"

#include <weft/cluster/archive.hpp>
#include <weft/cluster/exceptions.hpp>

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>

using weft::remote::reader;
using weft::remote::travels;
using weft::remote::writer;

namespace {

struct part {
  std::string name;
  std::vector<double> values;
  bool operator==(const part&) const = default;
};
struct nested {
  part a;
  int b = 0;
  std::optional<part> c;
  std::map<std::string, std::vector<int>> d;
  std::variant<int, std::string> e;
  bool operator==(const nested&) const = default;
};
struct tree {
  int value = 0;
  std::vector<tree> below;
  bool operator==(const tree&) const = default;
};
struct point {
  int x, y;
  bool operator==(const point&) const = default;
};
struct sixteen {
  char a, b, c, d, e, f, g, h;
  point i, j, k, l, m, n, o;
  std::string p;
  bool operator==(const sixteen&) const = default;
};
struct nothing {};
struct with_array {
  int a[3];
  double b;
};
struct with_base : part {
  int more = 0;
};
struct with_pointer {
  int* p;
};
struct tree_with_pointer {
  int* p;
  std::vector<tree_with_pointer> below;
};
class closed {
 public:
  int get() const { return x_; }

 private:
  int x_ = 0;
};
class declared {
 public:
  int get() const { return x_; }
  bool operator==(const declared&) const = default;

 private:
  int x_ = 0;
};
class half_open {
 public:
  explicit half_open(int x = 0) : x_(x) {}
  template <class Archive>
  void serialize(Archive& a) {
    a(x_, twice_);
  }
  bool operator==(const half_open&) const = default;

 private:
  int x_;
  std::vector<part> twice_{2, part{"twice", {1.5}}};
};
struct outer {
  int array[2] = {3, 4};
};
template <class Archive>
void serialize(Archive& a, outer& o) {
  a(o.array);
}
/// A function for each direction; the derived class has another way, too, and nobody says which counts.
class doubled {
 public:
  explicit doubled(int x = 0) : x_(x), twice_(2 * x) {}
  template <class Archive>
  void save(Archive& a) const {
    static_assert(Archive::is_saving::value && !Archive::is_loading::value);
    a << x_;
  }
  template <class Archive>
  void load(Archive& a) {
    static_assert(Archive::is_loading::value && !Archive::is_saving::value);
    a >> x_;
    twice_ = 2 * x_;
  }
  bool operator==(const doubled&) const = default;

 private:
  int x_, twice_;
};
struct doubled_or_not : doubled {
  template <class Archive>
  void serialize(Archive&) {}
};
class secret {
  template <class Archive>
  void serialize(Archive& a) {
    a(x_);
  }
  int x_ = 0;
};
struct named_numbers : std::vector<int> {
  std::string name;
};
struct numbers : std::vector<int> {};
enum class colour : short { red, green };
class no_default {
 public:
  explicit no_default(int) {}
  template <class Archive>
  void serialize(Archive&) {}
};

template <class T>
T there_and_back(const T& value) {
  writer w;
  w(value, std::string("behind"));
  reader r(w.bytes());
  T got = r.get<T>();
  CHECK(r.get<std::string>() == "behind");
  CHECK(r.left() == 0);
  return got;
}

}  // namespace

template <>
inline constexpr bool weft::remote::travels_as_bytes<declared> = true;

static_assert(travels<int> && travels<bool> && travels<colour> && travels<std::complex<double>>);
static_assert(travels<std::chrono::nanoseconds> && travels<std::chrono::system_clock::time_point>);
static_assert(!travels<std::chrono::steady_clock::time_point>);  // counts from when the machine was started
static_assert(travels<std::string> && travels<std::vector<bool>> && travels<std::list<part>>);
static_assert(travels<std::unordered_map<int, part>> && travels<std::multiset<int>>);
static_assert(travels<std::deque<std::variant<std::monostate, part>>> && travels<std::array<part, 3>>);
static_assert(travels<std::pair<int, part>> && travels<std::tuple<>> && travels<std::tuple<int, part>>);
static_assert(travels<part> && travels<nested> && travels<tree> && travels<sixteen> && travels<half_open> &&
              travels<outer> && travels<declared>);
static_assert(travels<numbers> && !travels<named_numbers>);  // its name would be lost
static_assert(!travels<int*> && !travels<void (*)()> && !travels<int part::*> && !travels<int&>);
static_assert(!travels<std::string_view> && !travels<std::span<int>> &&
              !travels<std::reference_wrapper<int>>);
static_assert(!travels<std::unique_ptr<int>> && !travels<std::shared_ptr<int>>);
static_assert(!travels<std::vector<int*>> && !travels<std::optional<int*>> && !travels<std::pair<int, int*>>);
static_assert(!travels<with_array> && !travels<with_base> && !travels<with_pointer> &&
              !travels<tree_with_pointer> && !travels<closed> && !travels<no_default>);
static_assert(travels<doubled> && travels<std::vector<doubled>> && !travels<doubled_or_not> &&
              !travels<secret>);

/// Filled again, such a set would be in another order.
struct order {
  bool down = false;
  bool operator()(int a, int b) const { return down ? b < a : a < b; }
};
static_assert(!travels<std::set<int, order>> && !travels<std::map<int, int, bool (*)(int, int)>>);
static_assert(!travels<std::unordered_map<int, int, std::function<std::size_t(int)>>>);
static_assert(travels<std::set<int, std::greater<>>> && travels<std::unordered_map<std::string, int>>);

/// Its bytes are none.
struct nothing_at_all {
  template <class A>
  void serialize(A&) {}
};

struct with_gap {
  char a;
  int b;
};
static_assert(weft::remote::dense<point> && weft::remote::dense<std::complex<float>>);
static_assert(!weft::remote::dense<with_gap> && !weft::remote::dense<bool> && !weft::remote::dense<part>);

TEST_CASE("values of all kinds come out as they went in") {
  CHECK(there_and_back(std::vector<nothing_at_all>(3)).size() == 3);
  writer last;
  last(std::vector<nothing_at_all>(3));  // nothing behind it
  CHECK(reader(last.bytes()).get<std::vector<nothing_at_all>>().size() == 3);
  CHECK(there_and_back(std::list<std::array<nothing_at_all, 2>>(2)).size() == 2);
  CHECK(there_and_back(7) == 7);
  CHECK(there_and_back(true));
  CHECK(there_and_back(colour::green) == colour::green);
  CHECK(there_and_back(std::complex<double>(1, 2)) == std::complex<double>(1, 2));
  const part p{"p", {1, 2, 3}};
  CHECK(there_and_back(p) == p);
  const nested n{p, 7, part{"q", {4}}, {{"k", {1, 2}}, {"m", {}}}, "text"};
  CHECK(there_and_back(n) == n);
  CHECK(there_and_back(nested{}) == nested{});
  const tree t{1, {{2, {}}, {3, {{4, {}}}}}};
  CHECK(there_and_back(t) == t);
  const sixteen s{1,      2,      3,      4,      5,       6,        7,        8,
                  {1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}, {13, 14}, "last"};
  CHECK(there_and_back(s) == s);
  CHECK(there_and_back(half_open(5)) == half_open(5));
  CHECK(there_and_back(declared()) == declared());
  CHECK(there_and_back(std::vector<doubled>{doubled(4), doubled(5)}) ==
        std::vector<doubled>{doubled(4), doubled(5)});
  outer o;
  o.array[1] = 9;
  CHECK(there_and_back(o).array[1] == 9);
  CHECK(there_and_back(std::vector<bool>{true, false, true}) == std::vector<bool>{true, false, true});
  const std::unordered_map<int, part> m{{1, p}, {2, {}}};
  CHECK(there_and_back(m) == m);
  CHECK(there_and_back(std::multiset<int>{1, 1, 2}) == std::multiset<int>{1, 1, 2});
  const std::array<std::pair<int, std::string>, 2> a{{{1, "a"}, {2, "b"}}};
  CHECK(there_and_back(a) == a);
  CHECK(there_and_back(std::list<point>{{1, 2}, {3, 4}}) == std::list<point>{{1, 2}, {3, 4}});
  CHECK(there_and_back(std::optional<int>()) == std::nullopt);
  CHECK(there_and_back(std::vector<point>{{1, 2}, {3, 4}}) == std::vector<point>{{1, 2}, {3, 4}});
  CHECK(there_and_back(std::vector<with_gap>{{1, 2}, {3, 4}})[1].b == 4);
  CHECK(there_and_back(std::vector<nothing>(3)).size() == 3);
  CHECK(there_and_back(std::tuple<>()) == std::tuple<>());
}

TEST_CASE("a container that is read into loses what it had") {
  writer w;
  w(std::vector<int>{1}, std::list<int>{2}, std::optional<int>(), std::string("s"));
  reader r(w.bytes());
  std::vector<int> a{7, 8, 9};
  std::list<int> b{7, 8, 9};
  std::optional<int> c = 7;
  std::string d = "long before";
  r(a, b, c, d);
  CHECK(a == std::vector<int>{1});
  CHECK(b == std::list<int>{2});
  CHECK(!c);
  CHECK(d == "s");
}

TEST_CASE("a message that ends early, or has other bytes, is an error or another value, and nothing worse") {
  const nested n{{"name", {1, 2, 3}}, 7, part{"q", {4}}, {{"k", {1, 2}}, {"m", {}}}, "text"};
  writer w;
  w(n, std::vector<bool>{true, false}, std::list<part>{{"x", {}}}, true);
  const auto read = [](std::span<const std::byte> from) {
    reader r(from);
    r.get<nested>();
    r.get<std::vector<bool>>();
    r.get<std::list<part>>();
    r.get<bool>();
    return r.left();
  };
  const std::vector<std::byte> all = w.bytes();
  CHECK(read(all) == 0);
  for (std::size_t i = 0; i < all.size(); ++i)
    CHECK_THROWS_AS(read(std::span<const std::byte>(all).first(i)), weft::error);
  std::mt19937 random(1);
  unsigned refused = 0;
  for (int i = 0; i < 20000; ++i) {
    auto damaged = all;
    for (int j = 0; j < 3; ++j)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    try {
      read(damaged);
    } catch (const weft::error&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

namespace {

struct told : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct untold : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct numbered {
  int number = 0;
  std::string text;
};

std::exception_ptr there_and_back(const std::exception_ptr& e) {
  writer w;
  weft::remote::detail::pack_exception(w, e);
  w(42);
  reader r(w.bytes());
  const auto got = weft::remote::detail::unpack_exception(r);
  CHECK(r.get<int>() == 42);
  return got;
}
/// The text of what comes out, if that is of just this type.
template <class E>
std::string comes_out_as(const E& thrown) {
  try {
    std::rethrow_exception(there_and_back(std::make_exception_ptr(thrown)));
  } catch (const E& e) {
    return typeid(e) == typeid(E) ? e.what() : "of a derived type";
  } catch (...) {
    return "of another type";
  }
}

}  // namespace

TEST_CASE("exceptions of the standard library, and those of weft, keep type and text") {
  CHECK(comes_out_as(std::runtime_error("a")) == "a");
  CHECK(comes_out_as(std::logic_error("b")) == "b");
  CHECK(comes_out_as(std::out_of_range("c")) == "c");
  CHECK(comes_out_as(std::underflow_error("")).empty());
  CHECK(comes_out_as(std::bad_alloc()) == std::bad_alloc().what());
  CHECK(comes_out_as(std::bad_optional_access()) == std::bad_optional_access().what());
  CHECK(comes_out_as(weft::error("d")) == "d");
  CHECK(comes_out_as(weft::cancelled()) == weft::cancelled().what());
  for (const auto* category : {&std::generic_category(), &std::system_category()})
    for (const char* text : {"", "file 'x'"}) {
      const std::system_error e(ENOSPC, *category, text);
      CHECK(comes_out_as(e) == e.what());
      try {
        std::rethrow_exception(there_and_back(std::make_exception_ptr(e)));
      } catch (const std::system_error& got) {
        CHECK(got.code() == e.code());
      }
    }
}

TEST_CASE("a registered type travels as itself, another one as its text with the name of the type") {
  CHECK(comes_out_as(told("before")) == "of another type");
  weft::remote::register_exception<told>();
  weft::remote::register_exception<told>();
  weft::remote::register_exception<numbered>();
  CHECK(comes_out_as(told("after")) == "after");
  try {
    std::rethrow_exception(there_and_back(std::make_exception_ptr(numbered{3, "three"})));
  } catch (const numbered& n) {
    CHECK(n.number == 3);
    CHECK(n.text == "three");
  }
  // Once more: it may go on to a third process.
  for (auto e = std::make_exception_ptr(untold("why")); const bool again : {false, true}) {
    e = there_and_back(e);
    try {
      std::rethrow_exception(e);
    } catch (const weft::remote_error& r) {
      CHECK(r.what() == std::string("why"));
      CHECK(r.type_name().ends_with("untold"));
    }
    CHECK((again || e));
  }
  try {
    std::rethrow_exception(there_and_back(std::make_exception_ptr(5)));
  } catch (const weft::remote_error& r) {
    CHECK(r.type_name() == "int");
  }
  const std::system_error foreign(std::make_error_code(std::io_errc::stream), "pipe");
  CHECK(comes_out_as(foreign) == "of another type");
}
