// SPDX-License-Identifier: BSL-1.0
// How a value goes to another process that a task reads there.
#pragma once

#include <weft/cluster/archive.hpp>
#include <weft/cluster/detail/hash.hpp>
#include <weft/cluster/detail/kept_values.hpp>
#include <weft/cluster/detail/sent_values.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Whether a receiver may keep values of type T: not if they are hardly longer than what would stand for
/// them.
template <class T>
inline constexpr bool may_be_kept =
    !((travels_as_bytes<T> || dense<T>) && sizeof(T) <= 2 * sizeof(std::uint64_t));

/// The bytes of a value, where they are all that is packed of it but for their number.
template <class T>
std::optional<std::span<const std::byte>> bytes_in_place(const T& value) noexcept {
  if constexpr (dense<T>)
    return std::as_bytes(std::span(&value, 1));
  else if constexpr (block<T> && !travels_as_bytes<T> && !names_parts<T>)
    return std::as_bytes(std::span(std::ranges::data(value), std::ranges::size(value)));
  else
    return {};
}

/// Appends a value that a task reads, or what stands for it where the receiver keeps it (writer::values).
/// *Throws*: as writer.
template <class T>
void pack_read(const T& value, writer& w) {
  if constexpr (!may_be_kept<T>) {
    w(value);
  } else {
    const std::size_t at = w.bytes().size();
    w(value_form::whole);
    sent_values* const known = w.values();
    if (known == nullptr) return static_cast<void>(w(value));
    const auto key = [](std::span<const std::byte> content) {
      return value_key{content_hash::of(content), content.size(), typeid(T)};
    };
    if (const auto content = bytes_in_place(value)) {  // so what is kept need not be packed
      if (content->size() < known->least()) return static_cast<void>(w(value));
      const value_key k = key(*content);
      if (known->refer(k, w, at)) return;
      w(value);
      return known->offer(k, w, at);
    }
    w(value);
    const auto content = std::span<const std::byte>(w.bytes()).subspan(at + sizeof(value_form));
    if (content.size() < known->least()) return;
    const value_key k = key(content);
    if (!known->refer(k, w, at)) known->offer(k, w, at);
  }
}

/// Such a value in the process that executes the task. What is kept is shared with other tasks: nobody writes
/// it, since a right to read is all that there is on it.
template <class T>
class read_value {
 public:
  /// *Throws*: as reader.
  void unpack(reader& r) {
    if constexpr (!may_be_kept<T>) {
      own_.emplace(r.get<T>());
    } else {
      switch (r.get<value_form>()) {
        case value_form::whole:
          own_.emplace(r.get<T>());
          return;
        case value_form::to_keep: {
          const std::size_t before = r.left();
          shared_ = std::make_shared<T>(r.get<T>());
          const std::size_t size = before - r.left();
          const auto number = r.get<std::uint64_t>();
          const auto dropped = r.get<std::vector<std::uint64_t>>();
          if (r.values() == nullptr) reader::refuse();
          r.values()->drop(dropped);
          r.values()->keep(number, shared_, size);
          return;
        }
        case value_form::number: {
          const auto number = r.get<std::uint64_t>();
          if (r.values() == nullptr) reader::refuse();
          shared_ = r.values()->find<T>(number);
          return;
        }
      }
      reader::refuse();
    }
  }
  /// *Requires*: unpack() has returned.
  T* get() noexcept {
    if constexpr (may_be_kept<T>)
      if (shared_) return shared_.get();
    return std::addressof(*own_);
  }

 private:
  struct nothing {};
  std::optional<T> own_;
  [[no_unique_address]] std::conditional_t<may_be_kept<T>, std::shared_ptr<T>, nothing> shared_;
};

}  // namespace weft::inline WEFT_ABI::remote
