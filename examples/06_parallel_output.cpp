// SPDX-License-Identifier: BSL-1.0
// Parallel output: tasks write groups of records, a few of them fifty times as large as the others, into one
// file, which holds the bytes of the serial program.
//
// Prints:
//   288200 records, 10247090 bytes: as the serial program wrote them: yes
#include "records.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

static void write_group(const records::collection& c, records::group g, weft::append out) {
  if (g.is_leaf()) return records::write_leaf(c, g.from, [&out](std::string_view text) { out.write(text); });
  out.write(g.first_row());
  records::for_each_part(g, [&](records::group part) { weft::fork(write_group, std::cref(c), part, out); });
  out.write(g.last_row());  // stands behind what the groups write, and waits for none of them
}

int main() {
  const records::collection c{1000, 200, 80, 50};
  const records::group all{0, c.leaves};
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "weft-example-06.csv";

  weft::runtime rt;
  weft::append_file file(path, {.overwrite = true});
  rt.run(write_group, std::cref(c), all, file);
  file.close();  // from now on the file is there, and complete

  std::ifstream in(path, std::ios::binary);
  const std::string written(std::istreambuf_iterator<char>(in), {});
  std::filesystem::remove(path);
  std::string expected;
  records::write_group(c, all, expected);
  long count = 0;
  for (long i = 0; i < c.leaves; ++i) count += c.records_in(i);
  const bool same = written == expected;
  std::printf("%ld records, %zu bytes: as the serial program wrote them: %s\n", count, written.size(),
              same ? "yes" : "no");
  return same ? 0 : 1;
}
