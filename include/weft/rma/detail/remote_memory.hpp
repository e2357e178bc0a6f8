// SPDX-License-Identifier: BSL-1.0
// Memory of other processes that has no address here: what can be done with it.
#pragma once

#include <weft/rma/combine.hpp>
#include <weft/rma/words.hpp>

#include <cstddef>
#include <cstdint>

namespace weft::inline WEFT_ABI::rma::detail {

/// The type of an element, for those that do not know it at compile time.
enum class number_type : std::uint8_t { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 };
/// The type of numbers like T.
template <number T>
constexpr number_type type_of() noexcept {
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? number_type::f32 : number_type::f64;
  constexpr int log = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return static_cast<number_type>(2 * log + (std::is_signed_v<T> ? 0 : 1));
}
/// Calls `f` with a number of a type.
template <class F>
decltype(auto) with_number(number_type t, F&& f) {
  switch (t) {
    case number_type::i8:
      return f(std::int8_t{});
    case number_type::u8:
      return f(std::uint8_t{});
    case number_type::i16:
      return f(std::int16_t{});
    case number_type::u16:
      return f(std::uint16_t{});
    case number_type::i32:
      return f(std::int32_t{});
    case number_type::u32:
      return f(std::uint32_t{});
    case number_type::i64:
      return f(std::int64_t{});
    case number_type::u64:
      return f(std::uint64_t{});
    case number_type::f32:
      return f(float{});
    default:
      return f(double{});
  }
}

/// Bytes of each process, named by their process and their offset there.
/// *Throws*: mpi::error. *Thread safety*: any thread.
class remote_memory {
 public:
  virtual ~remote_memory() = default;
  /// Begins to read bytes. They are there after finish(), as what follows is complete then.
  virtual void start_get(process target, std::size_t offset, void* to, std::size_t bytes) = 0;
  /// Begins to write bytes.
  virtual void start_put(process target, std::size_t offset, const void* from, std::size_t bytes) = 0;
  /// Begins to combine elements with others, each atomically.
  virtual void start_accumulate(process target, std::size_t offset, const void* from, std::size_t count,
                                number_type type, combine how) = 0;
  /// Waits until what this thread has begun with a target is complete.
  virtual void finish(process target) = 0;
  /// Reads an element of up to 8 bytes, atomically.
  virtual std::uint64_t load(process target, std::size_t offset, number_type type) = 0;
  /// Combines an element, atomically. *Returns*: what it was.
  virtual std::uint64_t fetch(process target, std::size_t offset, number_type type, combine how,
                              std::uint64_t value) = 0;
  /// Replaces an element if it is as expected. *Returns*: what it was.
  virtual std::uint64_t compare_exchange(process target, std::size_t offset, number_type type,
                                         std::uint64_t expected, std::uint64_t wanted) = 0;
};

/// Words of such memory, from one of them on.
class memory_words {
 public:
  memory_words(remote_memory& memory, process self, std::uint32_t first = 0) noexcept
      : memory_(&memory), self_(self), first_(first) {}
  process self() const noexcept { return self_; }
  std::uint64_t load(process p, std::uint32_t i) const { return memory_->load(p, place_(i), word); }
  void store(process p, std::uint32_t i, std::uint64_t v) const { exchange(p, i, v); }
  std::uint64_t fetch_add(process p, std::uint32_t i, std::uint64_t v) const {
    return memory_->fetch(p, place_(i), word, combine::sum, v);
  }
  std::uint64_t fetch_or(process p, std::uint32_t i, std::uint64_t v) const {
    return memory_->fetch(p, place_(i), word, combine::bit_or, v);
  }
  std::uint64_t exchange(process p, std::uint32_t i, std::uint64_t v) const {
    return memory_->fetch(p, place_(i), word, combine::replace, v);
  }
  std::uint64_t compare_exchange(process p, std::uint32_t i, std::uint64_t expected, std::uint64_t v) const {
    return memory_->compare_exchange(p, place_(i), word, expected, v);
  }

 private:
  static constexpr number_type word = number_type::u64;
  std::size_t place_(std::uint32_t i) const noexcept {
    return (std::size_t{first_} + i) * sizeof(std::uint64_t);
  }
  remote_memory* memory_;
  process self_;
  std::uint32_t first_;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
