// SPDX-License-Identifier: BSL-1.0
// The same appends by bare threads, which no runtime can beat: each with its buffer and a file of its own, or
// its part of one file, where it knows from the start; and the layout of the paper, one write per append into
// a file per worker, without and with the export to one file.
#include "config.hpp"
#include "files.hpp"

#include <atomic>
#include <thread>

namespace weft_bench {
namespace {

/// Runs body(0) ... body(count - 1), each on a thread of its own.
template <class Body>
void on_threads(unsigned count, const Body& body) {
  std::vector<std::thread> others;
  for (unsigned t = 1; t < count; ++t) others.emplace_back(body, t);
  body(0);
  for (std::thread& t : others) t.join();
}

outcome run_bare(int index, unsigned workers) {
  const one_processor home(workers);
  const cleaner at_end;
  const long long calls = fib_calls(fib_number());
  std::vector<std::string> paths;
  const unsigned files = is(index, fib_plain) ? 1 : workers;
  for (unsigned f = 0; f < files; ++f) paths.push_back(scratch.file("part" + std::to_string(f)));
  const stopwatch clock;
  on_threads(workers, [&](unsigned t) {
    const long long first = calls * t / workers;
    const std::uint64_t from = files == 1 ? static_cast<std::uint64_t>(first) * append_size : 0;
    buffered_file out(paths[t % files], O_WRONLY | O_CREAT, from);
    for (long long i = first; i < calls * (t + 1) / workers; ++i) {
      appended text;
      fill(text, i);
      out.append(text.data(), text.size());
    }
    out.close();
  });
  const double seconds = clock.seconds();
  digest d;
  for (const std::string& path : paths) d.add_file(path);
  return plain_outcome(d.value(), calls, seconds);
}

struct piece {
  unsigned file;
  std::uint64_t offset, length;
};

/// Copies the pieces in order, a megabyte at a time.
void export_pieces(const std::vector<piece>& pieces, const std::vector<std::unique_ptr<descriptor>>& from,
                   const std::string& path) {
  buffered_file out(path);
  std::vector<char> text;
  for (const piece& p : pieces) {
    text.resize(p.length);
    from[p.file]->read(text.data(), text.size(), p.offset);
    out.append(text.data(), text.size());
  }
  out.close();
}

outcome run_paper(int index, unsigned workers) {
  const one_processor home(workers);
  const cleaner at_end;
  constexpr long long calls_of_a_piece = 8;
  const long long calls = fib_calls(fib_number());
  std::vector<piece> pieces(static_cast<std::size_t>((calls + calls_of_a_piece - 1) / calls_of_a_piece));
  std::vector<std::unique_ptr<descriptor>> files(workers);
  std::atomic<std::size_t> next = 0;
  const std::string path = scratch.file("plain");
  const stopwatch clock;
  on_threads(workers, [&](unsigned t) {
    files[t] =
        std::make_unique<descriptor>(scratch.file("worker" + std::to_string(t)), O_RDWR | O_CREAT | O_TRUNC);
    std::uint64_t end = 0;
    // Relaxed: each number is given out once, and what is done with it is joined with the threads.
    for (std::size_t p; (p = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();) {
      const std::uint64_t begin = end;
      const auto first = static_cast<long long>(p) * calls_of_a_piece;
      for (long long i = first; i < std::min(first + calls_of_a_piece, calls); ++i) {
        appended text;
        fill(text, i);
        files[t]->write(text.data(), text.size());
        end += text.size();
      }
      pieces[p] = {t, begin, end - begin};
    }
  });
  if (is(index, fib_plain)) export_pieces(pieces, files, path);
  const double seconds = clock.seconds();
  if (!is(index, fib_plain)) export_pieces(pieces, files, path);
  return plain_outcome(digest_of(path), calls, seconds);
}

bool fits_fib(int index, unsigned) { return is(index, fib_plain) || is(index, fib_parts); }

const registration bare("threads", run_bare, fits_fib);
const registration paper("paper", run_paper, fits_fib);

}  // namespace
}  // namespace weft_bench
