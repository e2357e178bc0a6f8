// SPDX-License-Identifier: BSL-1.0
// Copies of the names of tasks, which need not live as long as a trace: one for each text.
#pragma once

#include <weft/base/lock.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

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
      const auto found = all_.find(text);
      if (found != all_.end()) return found->c_str();
      if (all_.size() < most) return all_.emplace(text).first->c_str();
    } catch (...) {  // no memory
    }
    return "other";
  }

 private:
  base::mutex mutex_;
  std::set<std::string, std::less<>> all_;
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
