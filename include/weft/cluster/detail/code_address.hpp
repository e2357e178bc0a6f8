// SPDX-License-Identifier: BSL-1.0
// Addresses of functions as they are told to other processes, which have loaded the same program elsewhere.
#pragma once

#include <weft/base/error.hpp>
#include <weft/io/crc32c.hpp>

#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::inline WEFT_ABI::remote {

/// Where a function is, in a way that all processes that run the same program understand.
struct code_address {
  std::uint32_t module = 0;  ///< by the order in which they were loaded
  std::uint64_t offset = 0;  ///< from its beginning, in bytes
};

/// The build id that the linker has left in a loaded program or library: it differs where the contents do.
/// *Returns*: empty if there is none.
inline std::string_view build_id_of(const dl_phdr_info& info) noexcept {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& part = info.dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const std::size_t align = part.p_align == 8 ? 8 : 4;
    const auto padded = [align](std::size_t n) { return (n + align - 1) / align * align; };
    const char* const notes = reinterpret_cast<const char*>(info.dlpi_addr + part.p_vaddr);
    ElfW(Nhdr) head{};
    for (std::size_t at = 0; at + sizeof head <= part.p_memsz;) {
      std::memcpy(&head, notes + at, sizeof head);
      const std::size_t name = at + sizeof head, content = padded(name + head.n_namesz);
      at = padded(content + head.n_descsz);
      if (at > padded(part.p_memsz)) break;
      if (head.n_type == NT_GNU_BUILD_ID &&
          std::string_view(notes + name, head.n_namesz) == std::string_view("GNU\0", 4))
        return {notes + content, head.n_descsz};
    }
  }
  return {};
}

/// The program and the shared libraries that it was started with. *Thread safety*: constant.
class loaded_code {
 public:
  loaded_code() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* self) {
          static_cast<loaded_code*>(self)->add_(*info);
          return 0;
        },
        this);
  }

  /// Of what is described like this.
  explicit loaded_code(std::span<const dl_phdr_info> all) {
    for (const dl_phdr_info& info : all) add_(info);
  }

  /// *Throws*: weft::error for a function of a library that was loaded later.
  code_address find(const void* function) const {
    const auto at = reinterpret_cast<std::uintptr_t>(function);
    for (std::uint32_t i = 0; i < all_.size(); ++i)
      if (at - all_[i].begin < all_[i].size) return {i, at - all_[i].begin};
    throw error("weft: a task of a library that was loaded after the start cannot go to another process");
  }
  /// *Throws*: weft::error if there is nothing at such an address.
  const void* at(const code_address& a) const {
    if (a.module >= all_.size() || a.offset >= all_[a.module].size)
      throw error("weft: a message from another process names a function that this program does not have");
    return reinterpret_cast<const void*>(all_[a.module].begin + a.offset);
  }
  /// A number that differs where the program or its libraries do: of these the build ids count, or the
  /// contents of the files where they have none. *Throws*: weft::error.
  std::uint64_t identity() const {
    std::uint32_t code = 0;
    for (const module& m : all_) {
      const std::string file = m.path.substr(m.path.rfind('/') + 1);
      code = io::crc32c(file.data(), file.size(), code);
      code = io::crc32c(&m.size, sizeof m.size, code);
      const std::uint32_t content = m.build_id.empty() && !m.path.empty() ? contents_of_(m.path.c_str()) : 0;
      code = io::crc32c(&content, sizeof content, io::crc32c(m.build_id.data(), m.build_id.size(), code));
    }
    return std::uint64_t{contents_of_("/proc/self/exe")} << 32 | code;
  }

  /// As the process was started: what a library loads later is in another place in each of them.
  static const loaded_code& at_start() noexcept { return at_start_; }

 private:
  struct module {
    std::string path;  // empty: the program
    std::string build_id;
    std::uintptr_t begin = 0;
    std::uint64_t size = 0;
  };

  void add_(const dl_phdr_info& info) {
    module m;
    m.path = info.dlpi_name != nullptr ? info.dlpi_name : "";
    // What is in no file is the kernel's, another one on each machine.
    if (!m.path.empty() && m.path.find('/') == std::string::npos) return;
    m.build_id = build_id_of(info);
    m.begin = info.dlpi_addr;
    for (int i = 0; i < info.dlpi_phnum; ++i)
      if (const auto& part = info.dlpi_phdr[i]; part.p_type == PT_LOAD)
        m.size = std::max<std::uint64_t>(m.size, part.p_vaddr + part.p_memsz);
    all_.push_back(std::move(m));
  }
  static std::uint32_t contents_of_(const char* path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), &std::fclose);
    if (!file) throw error(std::string("weft: cannot read ") + path + " to compare it with other processes");
    std::vector<char> part(1u << 16);
    std::uint32_t sum = 0;
    while (const std::size_t n = std::fread(part.data(), 1, part.size(), file.get()))
      sum = io::crc32c(part.data(), n, sum);
    return sum;
  }

  static const loaded_code at_start_;
  std::vector<module> all_;
};

inline const loaded_code loaded_code::at_start_;

}  // namespace weft::inline WEFT_ABI::remote
