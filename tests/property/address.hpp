// SPDX-License-Identifier: BSL-1.0
// How a task of a random program names what all tasks share: by a pointer, or, in a cluster whose processes
// are threads, by one that travels.
#pragma once

#ifdef WEFT_TEST_TRAVELS

#include <weft/cluster/archive.hpp>

namespace property {

template <class T>
class address {
 public:
  address() = default;
  explicit address(T* to) : to_(to) {}
  T& operator*() const { return *to_; }

 private:
  T* to_ = nullptr;
};

}  // namespace property

template <class T>
inline constexpr bool weft::remote::travels_as_bytes<property::address<T>> = true;

#else

namespace property {

template <class T>
using address = T*;

}  // namespace property

#endif
