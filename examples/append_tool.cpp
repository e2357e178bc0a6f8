// SPDX-License-Identifier: BSL-1.0
// Shows, verifies, recovers and exports append streams from the command line.
//
// usage: append_tool show <stream>                        what it is, and what is left of it
//        append_tool verify <stream>                      reads everything, compares all checksums
//        append_tool recover [--overwrite] <stream>       finishes what a crash has left
//        append_tool export [--overwrite] <stream> <to>   makes one ordinary file of it
// exit status: 0: done; 1: damaged, unfinished, or nothing to recover; 2: wrong usage; 3: a file cannot be
// read or written
#include <weft/archive/reader.hpp>
#include <weft/archive/recovery.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

namespace {

enum status { done = 0, not_whole = 1, usage = 2, no_file = 3 };

void print(const char* what, unsigned long long value) { std::printf("%-10s %llu\n", what, value); }

void describe(const weft::recovered& left) {
  std::printf("%-10s %s\n", "layout", left.segmented ? "segmented" : "plain");
  print("bytes", left.bytes);
  if (left.segmented) print("segments", left.segments);
  if (left.committed > left.bytes) print("committed", left.committed);
  std::printf("%-10s %s\n", "complete", left.was_complete ? "yes" : "no");
  if (!left.reason.empty()) std::printf("%-10s %s\n", "ends", left.reason.c_str());
}

status show(const std::string& stream) {
  const weft::recovered left = weft::recoverable(stream);
  describe(left);
  return left.was_complete ? done : not_whole;
}

status verify(const std::string& stream) {
  const weft::append_reader reader(stream);
  reader.verify();
  std::printf("%llu bytes in %llu segments: %s\n", static_cast<unsigned long long>(reader.size()),
              static_cast<unsigned long long>(reader.segments()),
              reader.segmented() ? "every checksum is right" : "a plain file, which has no checksums");
  return done;
}

status recover(const std::string& stream, bool overwrite) {
  describe(weft::recover(stream, overwrite));
  return done;
}

status export_plain(const std::string& stream, const std::string& to, bool overwrite) {
  const weft::append_reader reader(stream);
  reader.export_plain(to, overwrite);
  std::printf("%llu bytes written to '%s'\n", static_cast<unsigned long long>(reader.size()), to.c_str());
  return done;
}

status run(std::vector<std::string> words) {
  const bool overwrite = words.size() > 1 && words[1] == "--overwrite";
  if (overwrite) words.erase(words.begin() + 1);
  const std::string verb = words.empty() ? "" : words[0];
  if (verb == "show" && words.size() == 2 && !overwrite) return show(words[1]);
  if (verb == "verify" && words.size() == 2 && !overwrite) return verify(words[1]);
  if (verb == "recover" && words.size() == 2) return recover(words[1], overwrite);
  if (verb == "export" && words.size() == 3) return export_plain(words[1], words[2], overwrite);
  std::fputs(
      "usage: append_tool show <stream>\n"
      "       append_tool verify <stream>\n"
      "       append_tool recover [--overwrite] <stream>\n"
      "       append_tool export [--overwrite] <stream> <to>\n",
      stderr);
  return usage;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (const weft::error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return not_whole;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return no_file;
  }
}
