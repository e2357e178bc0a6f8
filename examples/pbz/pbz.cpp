// SPDX-License-Identifier: BSL-1.0
// Compresses a file on all processors into exactly the bytes that bzip2 makes of it.
//
// Blocks are read one after the other and compressed side by side. A block ends at any bit, and where it
// begins is known when all before it are: that is where append::finalise comes in.
#include "bits.hpp"
#include "block_reader.hpp"
#include "progress.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace pbz {
namespace {

constexpr const char* usage =
    "usage: pbz [-1 ... -9] [-c] [-f] [-p number] [-q] [-v] [input [output]]\n"
    "Compresses input, or what it is sent if there is none or it is -, to the bytes that bzip2 gives.\n"
    "The output is named as the input with .bz2, unless said otherwise; the standard output is -.\n"
    "  -1 ... -9  size of blocks, in 100000 bytes (9)\n"
    "  -c         to the standard output\n"
    "  -f         replaces an existing output\n"
    "  -p number  so many workers, not as many as there are processors\n"
    "  -v, -q     shows progress on the standard error stream, or not; without both: on a terminal\n"
    "Exit status: 0, or 1 after an error; then an output file is not there, or is the one from before.\n";

struct wrong_usage : std::runtime_error {
  using runtime_error::runtime_error;
};

struct settings {
  int level = 9;
  bool overwrite = false;
  unsigned workers = 0;
  bool quiet = false;
  bool verbose = false;
  std::string input = "-";
  std::string output;
};

settings parse(int argc, char** argv) {
  settings s;
  bool to_output = false;
  int names = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      std::exit(0);
    }
    if (word == "-p") {
      char* end = nullptr;
      const long n = i + 1 < argc ? std::strtol(argv[++i], &end, 10) : 0;
      if (n < 1 || n > 4096 || *end != '\0') throw wrong_usage("-p needs a number from 1 to 4096");
      s.workers = static_cast<unsigned>(n);
    } else if (word.size() > 1 && word[0] == '-') {
      for (const char c : word.substr(1)) {
        if (c >= '1' && c <= '9')
          s.level = c - '0';
        else if (c == 'c')
          to_output = true;
        else if (c == 'f')
          s.overwrite = true;
        else if (c == 'q')
          s.quiet = true;
        else if (c == 'v')
          s.verbose = true;
        else
          throw wrong_usage("there is no option -" + std::string(1, c));
      }
    } else if (++names == 1) {
      s.input = word;
    } else if (names == 2) {
      s.output = word;
    } else {
      throw wrong_usage("there are three names");
    }
  }
  if (to_output && names == 2) throw wrong_usage("-c and the name of an output exclude each other");
  if (to_output || (s.output.empty() && s.input == "-")) s.output = "-";
  if (s.output.empty()) s.output = s.input + ".bz2";
  return s;
}

/// What all tasks of a compression use.
struct job {
  const settings& wanted;
  block_reader blocks;
  bit_joiner joiner;  // used by the hooks only, which run one at a time
  progress shown;
};

void write(weft::append_tail& tail, std::span<const unsigned char> data) { tail.write(std::as_bytes(data)); }

void compress_block(job& j, bytes raw, weft::append out) {
  coded_block b = compress(raw, j.wanted.level);
  out.finalise([&j, block = std::move(b)](weft::append_tail& tail) {
    j.joiner.add(block, [&tail](auto data) { write(tail, data); });
    j.shown.written(tail.position());
  });
}

/// Reads a block, forks its compression, and forks itself for the next: whoever takes the rest of the chain
/// while the block is compressed reads the next one. So no more blocks are in memory than there are workers.
void read_on(job& j, int most, weft::update<block_reader> blocks, weft::append out) {
  bytes raw = blocks->next();
  j.shown.read(blocks->bytes_read());
  if (raw.empty()) return;
  weft::fork({.name = "compress a block"}, compress_block, std::ref(j), std::move(raw), out);
  if (most > 1) weft::fork({.name = "read"}, read_on, std::ref(j), most - 1, blocks, out);
}

void compress_all(job& j, int at_once, weft::append out) {
  const char header[] = {'B', 'Z', 'h', static_cast<char>('0' + j.wanted.level)};
  out.write(std::string_view(header, sizeof header));
  while (!j.blocks.ended()) {
    // Links of a chain stay until its end, and so does what is compressed while the first block is not.
    weft::fork({.name = "read"}, read_on, std::ref(j), at_once, weft::update(weft::borrow(j.blocks)), out);
    weft::sync();
  }
  out.finalise([&j](weft::append_tail& tail) {
    j.joiner.finish([&tail](auto data) { write(tail, data); });
    j.shown.written(tail.position());
  });
}

std::atomic<bool> interrupted = false;

/// Relaxed: the flag says nothing about anything else.
bool was_interrupted() { return interrupted.load(std::memory_order_relaxed); }
void catch_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, [](int) { interrupted.store(true, std::memory_order_relaxed); });
}

/// A file, or a descriptor that somebody else opened.
class input_file {
 public:
  explicit input_file(const std::string& name)
      : descriptor_(name == "-" ? 0 : ::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat is{};
    if (descriptor_ < 0 || fstat(descriptor_, &is) != 0)
      throw std::system_error(errno, std::generic_category(), name);
    if (S_ISDIR(is.st_mode)) throw std::system_error(EISDIR, std::generic_category(), name);
    if (S_ISREG(is.st_mode)) size_ = static_cast<std::uint64_t>(is.st_size);
  }
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  ~input_file() {
    if (descriptor_ > 0) ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const { return size_; }  // 0: not known

 private:
  int descriptor_;
  std::uint64_t size_ = 0;
};

template <class Sink>
void compress_into(Sink& sink, job& j) {
  constexpr unsigned blocks_per_worker = 32;  // in a chain
  weft::runtime rt({.workers = j.wanted.workers});
  rt.run(compress_all, std::ref(j), static_cast<int>(blocks_per_worker * rt.workers()), sink);
  sink.close();
  j.shown.end();
}

void run(const settings& s) {
  if (s.output == "-" && isatty(1) != 0 && !s.overwrite)
    throw wrong_usage("compressed data is not written to a terminal; -f would");
  const input_file in(s.input);
  const bool show = s.verbose || (!s.quiet && isatty(2) != 0);
  // Before the stream, whose hooks use it.
  job j{s, {in.descriptor(), s.input == "-" ? "standard input" : s.input, s.level}, {}, {show, in.size()}};
  catch_signals();
  j.blocks.stop_when(was_interrupted);
  if (s.output == "-") {
    weft::append_sink sink(1);
    compress_into(sink, j);
  } else {
    // Nobody wants the beginning of a compressed file: without commits it goes with the handle.
    weft::append_file file(s.output, {.overwrite = s.overwrite, .commit_every = 0});
    compress_into(file, j);
  }
}

}  // namespace
}  // namespace pbz

int main(int argc, char** argv) {
  // Every block needs the same eight megabytes again: they stay with the process.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  try {
    pbz::run(pbz::parse(argc, argv));
    return 0;
  } catch (const pbz::wrong_usage& e) {
    std::fprintf(stderr, "pbz: %s\n%s", e.what(), pbz::usage);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pbz: %s\n", e.what());
  }
  return 1;
}
