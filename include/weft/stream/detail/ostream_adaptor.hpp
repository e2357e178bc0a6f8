// SPDX-License-Identifier: BSL-1.0
// An std::ostream whose text goes where somebody says.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <ostream>
#include <streambuf>

namespace weft::inline WEFT_ABI::stream {

/// An output stream without a buffer of its own. What the writer throws leaves the output operation.
class ostream_adaptor final : private std::streambuf, public std::ostream {
 public:
  using writer = void (*)(void* context, const char* text, std::size_t size);

  ostream_adaptor(writer w, void* context) : std::ostream(nullptr), write_(w), context_(context) {
    rdbuf(static_cast<std::streambuf*>(this));
    exceptions(std::ios_base::badbit);
  }

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    write_(context_, text, static_cast<std::size_t>(size));
    return size;
  }
  std::streambuf::int_type overflow(std::streambuf::int_type c) override {
    if (std::streambuf::traits_type::eq_int_type(c, std::streambuf::traits_type::eof()))
      return std::streambuf::traits_type::not_eof(c);
    const char one = std::streambuf::traits_type::to_char_type(c);
    write_(context_, &one, 1);
    return c;
  }

  writer write_;
  void* context_;
};

}  // namespace weft::inline WEFT_ABI::stream
