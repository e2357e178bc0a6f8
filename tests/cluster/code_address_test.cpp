// SPDX-License-Identifier: BSL-1.0
// Which programs count as the same, and functions as they are told to other processes.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <weft/cluster/detail/code_address.hpp>

#include <link.h>
#include <sys/auxv.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace weft::remote;

namespace {

/// A library as the loader describes it: with notes of these names, types and contents, in an area of its
/// own.
struct library {
  struct note {
    std::string name;
    std::uint32_t type;
    std::string content;
  };
  library(std::string where, const std::vector<note>& all, std::size_t align = 4) : path(std::move(where)) {
    const auto put = [&](const void* from, std::size_t size) {
      const char* const p = static_cast<const char*>(from);
      notes.insert(notes.end(), p, p + size);
      notes.resize((notes.size() + align - 1) / align * align);
    };
    for (const note& n : all) {
      ElfW(Nhdr) head{};
      head.n_namesz = static_cast<ElfW(Word)>(n.name.size() + 1);
      head.n_descsz = static_cast<ElfW(Word)>(n.content.size());
      head.n_type = n.type;
      const auto* const p = reinterpret_cast<const char*>(&head);
      notes.insert(notes.end(), p, p + sizeof head);
      put(n.name.c_str(), n.name.size() + 1);
      put(n.content.data(), n.content.size());
    }
    parts[0].p_type = PT_LOAD;
    parts[0].p_memsz = 4096;
    parts[1].p_type = PT_NOTE;
    parts[1].p_memsz = notes.size();
    parts[1].p_align = align;
  }
  dl_phdr_info info() {
    dl_phdr_info i{};
    i.dlpi_name = path.c_str();
    i.dlpi_addr = reinterpret_cast<ElfW(Addr)>(notes.data());
    i.dlpi_phdr = parts;
    i.dlpi_phnum = 2;
    return i;
  }

  std::string path;
  std::vector<char> notes;
  ElfW(Phdr) parts[2] {};
};

std::uint64_t identity(std::vector<library>&& all) {
  std::vector<dl_phdr_info> infos;
  for (library& l : all) infos.push_back(l.info());
  return loaded_code(infos).identity();
}

const library::note version{"GNU", NT_GNU_ABI_TAG, "0123456789abcdef"};
library::note build(std::string id) { return {"GNU", NT_GNU_BUILD_ID, std::move(id)}; }

}  // namespace

TEST_CASE("the build id of a library is found among its notes") {
  const std::string id = "a build id of 20 b.";
  for (const std::size_t align : {4u, 8u}) {
    CHECK(build_id_of(library("/lib/a.so", {version, build(id)}, align).info()) == id);
    CHECK(build_id_of(library("/lib/a.so", {build(id), version}, align).info()) == id);
    CHECK(build_id_of(library("/lib/a.so", {version}, align).info()).empty());
    CHECK(build_id_of(library("/lib/a.so", {{"Go", NT_GNU_BUILD_ID, id}}, align).info()).empty());
  }
  library cut("/lib/a.so", {build(id)});
  cut.parts[1].p_memsz -= 8;  // ends within the note
  CHECK(build_id_of(cut.info()).empty());
}

TEST_CASE("programs differ where their libraries were built from something else") {
  const std::uint64_t one = identity({{"/lib/a.so", {build("1")}}, {"/lib/b.so", {build("2")}}});
  CHECK(identity({{"/lib/a.so", {build("1")}}, {"/lib/b.so", {build("2")}}}) == one);
  CHECK(identity({{"/other/a.so", {build("1")}}, {"/lib/b.so", {build("2")}}}) ==
        one);  // the same file elsewhere
  CHECK(identity({{"/lib/a.so", {build("3")}}, {"/lib/b.so", {build("2")}}}) != one);
  CHECK(identity({{"/lib/c.so", {build("1")}}, {"/lib/b.so", {build("2")}}}) != one);
  CHECK(identity({{"/lib/b.so", {build("2")}}, {"/lib/a.so", {build("1")}}}) != one);
  CHECK(identity({{"/lib/a.so", {build("1")}}}) != one);
}

TEST_CASE("a library without a build id counts by its contents") {
  const weft_test::scratch folder;
  const std::string path = (folder.path() / "a.so").string();
  const auto with = [&](const std::string& content) {
    std::ofstream(path) << content;
    return identity({{path, {version}}});
  };
  const std::uint64_t one = with("code");
  CHECK(with("code") == one);
  CHECK(with("cods") != one);
}

TEST_CASE("what the kernel maps into a program is no part of it") {
  const std::uint64_t one = identity({{"/lib/a.so", {build("1")}}});
  library vdso("linux-vdso.so.1", {build("of this kernel")});
  CHECK(identity({vdso, {"/lib/a.so", {build("1")}}}) == one);
  CHECK_THROWS_AS(loaded_code::at_start().find(reinterpret_cast<const void*>(getauxval(AT_SYSINFO_EHDR))),
                  weft::error);
}

TEST_CASE("an address is told by a place in the program, and found there again") {
  const void* const function = reinterpret_cast<const void*>(&build_id_of);
  const code_address a = loaded_code::at_start().find(function);
  CHECK(loaded_code::at_start().at(a) == function);
  CHECK_THROWS_AS(loaded_code::at_start().at({a.module + 1000, a.offset}), weft::error);
  CHECK_THROWS_AS(loaded_code::at_start().at({a.module, UINT64_MAX}), weft::error);
}
