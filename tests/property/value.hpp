// SPDX-License-Identifier: BSL-1.0
// The two value types of random programs: a plain word, and a word whose instances are counted and checked.
#pragma once

#include <atomic>
#include <cstdint>

namespace property {

/// A word that knows whether it is alive, and how many of its kind are.
class counted {
 public:
  counted() noexcept : counted(0) {}
  explicit counted(std::uint64_t v) noexcept : value_(v), seal_(v ^ key) {
    live_.fetch_add(1, std::memory_order_relaxed);
  }
  counted(const counted& o) : counted(o.word()) {}
  counted& operator=(const counted& o) noexcept {
    word();  // the target must be alive too
    value_ = o.word();
    seal_ = value_ ^ key;
    return *this;
  }
  ~counted() {
    word();
    seal_ = value_;
    live_.fetch_sub(1, std::memory_order_relaxed);
  }
  explicit operator std::uint64_t() const { return word(); }
  template <class Archive>
  void serialize(Archive& a) {
    std::uint64_t v = word();
    a(v);
    *this = counted(v);
  }

  /// Relaxed in all of these: the main thread reads them after the run that wrote them has returned.
  static long live() { return live_.load(std::memory_order_relaxed); }
  static long corrupt() { return corrupt_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t key = 0x5EA1ED5EA1ED5EA1ull;

  std::uint64_t word() const {
    if (seal_ != (value_ ^ key)) corrupt_.fetch_add(1, std::memory_order_relaxed);
    return value_;
  }

  std::uint64_t value_, seal_;
  static inline std::atomic<long> live_{0}, corrupt_{0};
};

/// What random programs throw; counted, so that a leaked exception shows.
class thrown {
 public:
  explicit thrown(std::uint64_t id = 0) : id_(id) {}
  std::uint64_t id() const { return static_cast<std::uint64_t>(id_); }
  template <class Archive>
  void serialize(Archive& a) {
    a(id_);
  }

 private:
  counted id_;
};

}  // namespace property
