// SPDX-License-Identifier: BSL-1.0
// Classes that were written for cereal, with its headers: what its own archives do with them, weft's do, too,
// and tasks take them to other processes.
#include "support/catch.hpp"

#include <weft/cluster/threads.hpp>
#include <weft/weft.hpp>

#include <cereal/archives/binary.hpp>
#include <cereal/cereal.hpp>
#include <cereal/types/base_class.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using weft::remote::reader;
using weft::remote::travels;
using weft::remote::writer;

namespace site {

/// One function for both directions, private, with names for the values.
class layer {
 public:
  layer() = default;
  layer(std::string material, double thickness)
      : material_(std::move(material)), thickness_(thickness), marks_{1, 2, 3} {}
  bool operator==(const layer& o) const {
    return material_ == o.material_ && thickness_ == o.thickness_ && marks_[2] == o.marks_[2];
  }
  int loads() const { return loads_; }

 private:
  friend class cereal::access;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(material_), cereal::make_nvp("thickness", thickness_))(marks_[0]);
    archive(CEREAL_NVP(marks_));
    if (Archive::is_loading::value) ++loads_;
  }
  std::string material_;
  double thickness_ = 0;
  int marks_[3] = {};
  int loads_ = 0;
};

/// A function for each direction: what is derived from its data does not travel.
class index {
 public:
  index() = default;
  explicit index(std::vector<std::string> words) : words_(std::move(words)) { count(); }
  template <class Archive>
  void save(Archive& archive) const {
    archive(cereal::make_size_tag(static_cast<cereal::size_type>(words_.size())));
    for (const std::string& w : words_) archive << w;
  }
  template <class Archive>
  void load(Archive& archive) {
    cereal::size_type n = 0;
    archive(cereal::make_size_tag(n));
    words_.resize(n);
    for (std::string& w : words_) archive >> w;
    count();
  }
  bool operator==(const index&) const = default;

 private:
  void count() {
    places_.clear();
    for (std::size_t i = 0; i < words_.size(); ++i) places_[words_[i]] = &words_[i] - words_.data();
  }
  std::vector<std::string> words_;
  std::map<std::string, std::ptrdiff_t> places_;
};

/// Functions beside the class, which hands on raw bytes.
struct image {
  std::uint64_t size = 0;
  std::vector<float>* pixels = nullptr;
  std::vector<float> own{};
  bool operator==(const image& o) const { return own == o.own; }
};
template <class Archive>
void save(Archive& archive, const image& i) {
  archive(static_cast<std::uint64_t>(i.own.size()),
          cereal::binary_data(i.own.data(), i.own.size() * sizeof(float)));
}
template <class Archive>
void load(Archive& archive, image& i) {
  archive(i.size);
  i.own.resize(i.size);
  archive(cereal::binary_data(i.own.data(), i.own.size() * sizeof(float)));
}

/// One number stands for all.
class colour {
 public:
  colour() = default;
  colour(int red, int green) : red_(red), green_(green) {}
  template <class Archive>
  int save_minimal(const Archive&) const {
    return 256 * red_ + green_;
  }
  template <class Archive>
  void load_minimal(const Archive&, const int& v) {
    red_ = v / 256, green_ = v % 256;
  }
  bool operator==(const colour&) const = default;

 private:
  int red_ = 0, green_ = 0;
};
struct unit {
  std::string name;
  int* cache = nullptr;
  bool operator==(const unit& o) const { return name == o.name; }
};
template <class Archive>
std::string save_minimal(const Archive&, const unit& u) {
  return u.name;
}
template <class Archive>
void load_minimal(const Archive&, unit& u, const std::string& name) {
  u.name = name;
}

/// A base class with one spelling, and a derived one with another: cereal must be told which counts.
struct road : layer {
  road() = default;
  road(std::string material, int lanes_of) : layer(std::move(material), 0.5), lanes(lanes_of) {}
  template <class Archive>
  void save(Archive& archive) const {
    archive(cereal::base_class<layer>(this), lanes);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(cereal::base_class<layer>(this), lanes);
  }
  int lanes = 0;
  bool operator==(const road&) const = default;
};
/// The same, but nobody says it.
struct path : layer {
  template <class Archive>
  void save(Archive& archive) const {
    archive(cereal::base_class<layer>(this));
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(cereal::base_class<layer>(this));
  }
};

struct plan {
  std::map<std::string, std::vector<road>> roads;
  index words;
  std::vector<std::pair<colour, unit>> marks;
  bool operator==(const plan&) const = default;
};

/// Its only function asks for a version.
class versioned {
 public:
  template <class Archive>
  void serialize(Archive& archive, const std::uint32_t version) {
    if (version > 0) archive(x_);
  }

 private:
  int x_ = 0;
};

}  // namespace site

CEREAL_SPECIALIZE_FOR_ALL_ARCHIVES(site::road, cereal::specialization::member_load_save)

static_assert(travels<site::layer> && travels<site::index> && travels<site::image> && travels<site::colour> &&
              travels<site::unit> && travels<site::road> && travels<site::plan>);
static_assert(!travels<site::path> && !travels<site::versioned>);

namespace {

template <class T>
T by_weft(const T& value) {
  writer w;
  w(value, std::string("behind"));
  reader r(w.bytes());
  T got = r.get<T>();
  CHECK(r.get<std::string>() == "behind");
  CHECK(r.left() == 0);
  return got;
}
template <class T>
T by_cereal(const T& value) {
  std::stringstream bytes;
  cereal::BinaryOutputArchive to(bytes);
  to(value);
  T got{};
  cereal::BinaryInputArchive from(bytes);
  from(got);
  return got;
}
template <class T>
void compare(const T& value) {
  CHECK(by_weft(value) == by_cereal(value));
  CHECK(by_weft(value) == value);
}

site::plan plan_of(int i) {
  site::plan p;
  p.roads["north"] = {site::road("stone", i), site::road("sand", i + 1)};
  p.words = site::index({"one", "two", std::string(100, 'x')});
  p.marks = {{site::colour(i, 200), site::unit{"metre"}}, {site::colour(3, 4), site::unit{"mile"}}};
  return p;
}

std::atomic<int> executed{0};
void widen(weft::read<site::plan> from, site::colour with, weft::write<site::plan> to) {
  site::plan p = *from;
  for (site::road& r : p.roads["north"]) ++r.lanes;
  p.marks[0].first = with;
  to = p;
  ++executed;
}

}  // namespace

TEST_CASE("classes written for cereal come out as by its own archives") {
  compare(site::layer("clay", 2.5));
  compare(site::index({"a", "b", "a"}));
  compare(site::index());
  site::image i;
  i.own = {1, 2, 3};
  compare(i);
  compare(site::colour(1, 2));
  compare(site::unit{"metre"});
  compare(site::road("stone", 4));
  compare(std::vector<site::road>{{"stone", 4}, {"sand", 2}});
  compare(std::map<std::string, site::index>{{"x", site::index({"a"})}, {"y", {}}});
}

TEST_CASE("what is only sent is told so, and does not change") {
  const site::layer sent("clay", 2.5);
  writer w;
  w(sent, sent);
  CHECK(sent.loads() == 0);
  reader r(w.bytes());
  CHECK(r.get<site::layer>().loads() == 1);
}

TEST_CASE("a damaged message of such a class is an error") {
  writer w;
  w(plan_of(1));
  const std::vector<std::byte> all = w.bytes();
  for (std::size_t n = 0; n < all.size(); ++n) {
    reader r(std::span<const std::byte>(all).first(n));
    CHECK_THROWS_AS(r.get<site::plan>(), weft::error);
  }
}

TEST_CASE("tasks take such classes to other processes, and bring them back") {
  weft::thread_cluster c(2);
  const site::plan got = c.run([] {
    weft::shared<site::plan> from(plan_of(5)), to;
    executed = 0;
    weft::fork(weft::anywhere, widen, from, site::colour(9, 9), to);
    // The only worker of this process is here, so the other process executes it.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (executed == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    weft::sync();
    return to.get();
  });
  CHECK(c.counters(0).closures_sent == 1);
  site::plan want = plan_of(5);
  for (site::road& r : want.roads["north"]) ++r.lanes;
  want.marks[0].first = site::colour(9, 9);
  CHECK(got == want);
}
