// SPDX-License-Identifier: BSL-1.0
// Compressors that are programs of their own: pbz, and its rivals where they are found.
#include "process.hpp"

#include "config.hpp"
#include "files.hpp"

#include <spawn.h>
#include <sys/wait.h>

#include <cmath>
#include <stdexcept>

namespace weft_bench {
namespace {

/// Runs a command from a file to a file and returns the seconds.
double run_process(const std::vector<std::string>& command, const std::string& in, const std::string& out) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const stopwatch clock;
  pid_t pid = 0;
  int status = posix_spawnp(&pid, words[0], &files, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (status != 0) throw std::system_error(status, std::generic_category(), command[0]);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const double seconds = clock.seconds();
  if (status != 0) throw std::runtime_error(command[0] + " has failed");
  return seconds;
}

/// Some text with words as frequent as in languages.
void write_text(const std::string& path, std::size_t size) {
  std::uint64_t state = 1;
  const auto random = [&state] {
    state += 0x9e3779b97f4a7c15;
    return records::scatter(state);
  };
  std::vector<std::string> vocabulary(20000);
  for (std::string& word : vocabulary)
    for (std::uint64_t letters = 2 + random() % 4 + random() % 5; letters > 0; --letters)
      word += "etaoinshrdlucmfwygpbvk"[std::min(random() % 22, random() % 22)];
  buffered_file out(path);
  for (std::size_t written = 0, column = 0; written < size;) {
    const double rank = std::pow(double(vocabulary.size()), double(random() >> 11) * 0x1p-53) - 1;
    const std::string& word = vocabulary[std::size_t(rank)];
    out.append(word);
    column += word.size() + 1;
    out.append(column > 70 ? "\n" : " ");
    if (column > 70) column = 0;
    written += word.size() + 1;
  }
  out.close();
}

/// The text: a file that BENCH_PBZ_INPUT names, or BENCH_PBZ_MB megabytes.
std::string input() {
  if (const char* set = std::getenv("BENCH_PBZ_INPUT")) return set;
  const std::string path = scratch.file("keep-text");
  if (!std::filesystem::exists(path)) {
    write_text(path + ".part", std::size_t(setting("BENCH_PBZ_MB", 20)) * 1000 * 1000);
    std::filesystem::rename(path + ".part", path);
  }
  return path;
}

/// What bzip2 makes of it.
std::string stock() {
  const std::string path = scratch.file("keep-stock");
  if (!std::filesystem::exists(path)) {
    run_process({"bzip2", "-9", "-c"}, input(), path + ".part");
    std::filesystem::rename(path + ".part", path);
  }
  return path;
}

bool found(const char* program) {
  const char* folders = std::getenv("PATH");
  if (std::strchr(program, '/') != nullptr) return access(program, X_OK) == 0;
  std::string rest = folders != nullptr ? folders : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (access((rest.substr(0, end) + '/' + program).c_str(), X_OK) == 0) return true;
    rest.erase(0, end + 1);
  }
  return false;
}

#ifdef WEFT_BENCH_PBZ
outcome run_pbz(int, unsigned workers) {
  return run_compressor({WEFT_BENCH_PBZ, "-q", "-p", "#", "-c"}, compressed::as_stock, workers);
}
bool fits_pbz(int index, unsigned) { return is(index, bzip) && found(WEFT_BENCH_PBZ); }
const registration pbz("weft-pbz", run_pbz, fits_pbz);
#endif

outcome run_pbzip2(int, unsigned workers) {
  return run_compressor({"pbzip2", "-9", "-c", "-p#"}, compressed::anyhow, workers);
}
outcome run_lbzip2(int, unsigned workers) {
  return run_compressor({"lbzip2", "-9", "-c", "-n#"}, compressed::anyhow, workers);
}
bool fits_pbzip2(int index, unsigned) { return is(index, bzip) && found("pbzip2"); }
bool fits_lbzip2(int index, unsigned) { return is(index, bzip) && found("lbzip2"); }

const registration pbzip2("pbzip2", run_pbzip2, fits_pbzip2);
const registration lbzip2("lbzip2", run_lbzip2, fits_lbzip2);

}  // namespace

outcome run_compressor(std::vector<std::string> command, compressed how, unsigned workers) {
  const cleaner at_end;
  for (std::string& word : command)
    if (!word.empty() && word.back() == '#') word = word.substr(0, word.size() - 1) + std::to_string(workers);
  const std::string in = input(), out = scratch.file("compressed"), again = scratch.file("again");
  const double seconds = run_process(command, in, out);
  const auto size = static_cast<long long>(std::filesystem::file_size(in));
  bool right = false;
  if (how == compressed::as_stock) {
    right = digest_of(out) == digest_of(stock());
  } else {
    run_process({"bzip2", "-dc"}, out, again);
    right = digest_of(again) == digest_of(in);
  }
  return plain_outcome(right ? size : 0, size / 1000, seconds);
}

}  // namespace weft_bench
