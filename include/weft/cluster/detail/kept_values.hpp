// SPDX-License-Identifier: BSL-1.0
// The values of other processes that this one keeps for tasks that read them, too.
#pragma once

#include <weft/cluster/archive.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <typeinfo>
#include <utility>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Each process decides itself which of its values the others keep (sent_values), up to a number of bytes of
/// all together that this one has memory for. Values are kept as objects, so guests that read the same value
/// share one.
///
/// *Thread safety*: the thread that serves. What is kept is read by guests, and destroyed by whoever is the
/// last to give it up.
class kept_values {
 public:
  /// `most`: bytes, as values are packed.
  explicit kept_values(std::size_t most) noexcept : most_(most) {}
  kept_values(const kept_values&) = delete;
  kept_values& operator=(const kept_values&) = delete;

  /// What follows is read for a task of this process.
  void begin_task(int from) noexcept {
    from_ = from;
    news_ = false;
    kept_lately_.clear();
    dropped_lately_.clear();
  }
  /// Keeps a value under this number, unless there is no memory for that.
  template <class T>
  void keep(std::uint64_t number, std::shared_ptr<T> value, std::size_t size) noexcept {
    news_ = true;
    if (size > most_ - bytes_) return;
    try {
      kept_lately_.reserve(kept_lately_.size() + 1);
      const auto [at, fresh] =
          values_.try_emplace({from_, number}, entry{std::move(value), &typeid(T), size});
      if (!fresh) return;
    } catch (const std::bad_alloc&) {
      return;
    }
    bytes_ += size;
    kept_lately_.push_back(number);
  }
  /// The value of this number. *Throws*: weft::error if it is not there, or no T.
  template <class T>
  std::shared_ptr<T> find(std::uint64_t number) const {
    const auto found = values_.find({from_, number});
    if (found == values_.end() || *found->second.type != typeid(T)) reader::refuse();
    return std::static_pointer_cast<T>(found->second.value);
  }
  /// Gives these values up. *Throws*: std::bad_alloc; then none. weft::error for one that is not there.
  void drop(const std::vector<std::uint64_t>& numbers) {
    dropped_lately_.reserve(dropped_lately_.size() + numbers.size());
    for (const std::uint64_t n : numbers) {
      const auto found = values_.find({from_, n});
      if (found == values_.end()) reader::refuse();
      bytes_ -= found->second.size;
      values_.erase(found);
      dropped_lately_.push_back(n);
    }
  }

  /// Whether a value was to be kept since begin_task().
  bool has_news() const noexcept { return news_; }
  /// Appends which values were kept, and which given up, since begin_task().
  void pack_news(writer& w) const { w(kept_lately_, dropped_lately_); }
  /// How many bytes all have.
  std::size_t size() const noexcept { return bytes_; }
  /// Gives up all.
  void clear() noexcept {
    values_.clear();
    bytes_ = 0;
  }

 private:
  struct entry {
    std::shared_ptr<void> value;
    const std::type_info* type;
    std::size_t size;
  };

  const std::size_t most_;
  std::size_t bytes_ = 0;
  int from_ = 0;
  bool news_ = false;
  std::map<std::pair<int, std::uint64_t>, entry> values_;
  std::vector<std::uint64_t> kept_lately_, dropped_lately_;
};

}  // namespace weft::inline WEFT_ABI::remote
