// SPDX-License-Identifier: BSL-1.0
// Makes small streams for tests of programs: finished, unfinished and damaged ones of both layouts.
//
// usage: make_streams <directory>
#include "stream/small_streams.hpp"

#include <cstdio>

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::string here = std::string(words[1]) + "/";
  std::string damaged;
  for (const char* const name : {"finished", "unfinished", "damaged"}) {
    weft_test::stream_writer w(here + name, 2);
    w.add(0, "serial ");
    w.add(1, "bytes ");
    w.commit();
    w.add(0, "in parallel\n");
    if (std::string(name) == "unfinished")
      w.abandon();
    else
      w.finish();
    damaged = w.data(0);
  }
  std::string data = weft_test::slurp(damaged);
  data.back() = '!';
  weft_test::spill(damaged, data);

  weft_test::spill(here + "plain", "serial bytes\n");
  weft_test::spill(weft::stream::part_name(here + "log"), "serial bytes and some more");
  weft_test::log_writer(weft::stream::log_name(here + "log"))
      ->note(13, weft::io::crc32c("serial bytes ", 13));
  weft_test::spill(weft::stream::part_name(here + "alone"), "serial bytes");
}
