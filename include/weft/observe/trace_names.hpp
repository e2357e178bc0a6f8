// SPDX-License-Identifier: BSL-1.0
// Copies of the names of tasks, which need not live as long as a trace: one for each text.
#pragma once

#include <weft/base/lock.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::observe {

/// The copies, bounded in number and length. *Thread safety*: any thread.
class trace_names {
 public:
  static constexpr std::size_t longest = 255, most = 1u << 16;

  /// *Returns*: a copy of the beginning of the text, as long as the object lives; "other" when there are too
  /// many, or no memory.
  const char* keep(std::string_view text) noexcept {
    text = text.substr(0, longest);
    try {
      const std::lock_guard hold(mutex_);
      if (2 * count_ >= places_.size()) grow_();
      copy& place = place_of_(text);
      if (place != nullptr) return place.get();
      if (count_ < most) {
        copy made(new char[text.size() + 1]);
        made[text.copy(made.get(), text.size())] = '\0';
        ++count_;
        return (place = std::move(made)).get();
      }
    } catch (...) {  // no memory
    }
    return "other";
  }

 private:
  using copy = std::unique_ptr<char[]>;

  /// Where the copy of a text is, or will be.
  copy& place_of_(std::string_view text) noexcept {
    std::size_t i = std::hash<std::string_view>()(text);
    while (places_[i &= places_.size() - 1] != nullptr && places_[i].get() != text) ++i;
    return places_[i];
  }
  void grow_() {
    std::vector<copy> before(std::max<std::size_t>(64, 2 * places_.size()));
    before.swap(places_);
    for (copy& each : before)
      if (each != nullptr) place_of_(each.get()) = std::move(each);
  }

  base::mutex mutex_;
  std::vector<copy> places_;  // a hash table with open addressing; its size is a power of two
  std::size_t count_ = 0;
};

/// One thread's way to the copies of names that it meets again and again. The address alone does not tell a
/// name: the next task may have another text there.
class trace_name_cache {
 public:
  explicit trace_name_cache(trace_names& all) noexcept : all_(all) {}

  /// As trace_names::keep. *Cost*: a comparison of the text.
  const char* keep(const char* text) noexcept {
    if (text == nullptr) return "task";
    entry& e = entries_[reinterpret_cast<std::uintptr_t>(text) * 0x9E37'79B9'7F4A'7C15u >> 56];
    if (e.text != text || std::strncmp(e.copy, text, trace_names::longest) != 0) [[unlikely]]
      e = {text, all_.keep({text, strnlen(text, trace_names::longest)})};
    return e.copy;
  }

 private:
  struct entry {
    const char* text = nullptr;
    const char* copy = nullptr;
  };

  trace_names& all_;
  std::array<entry, 256> entries_{};
};

}  // namespace weft::inline WEFT_ABI::observe
