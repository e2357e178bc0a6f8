// SPDX-License-Identifier: BSL-1.0
// The serial programs: writes through one buffer of a megabyte, or, as another rival, one write per append;
// the loop of durable commits; stock bzip2; and what opening and seeking cost at least.
#include "config.hpp"
#include "files.hpp"
#include "process.hpp"
#include "segments.hpp"

namespace weft_bench {
namespace {

template <class Append>
void fib(int n, long long index, Append& append) {
  append(index);
  if (n < 2) return;
  fib(n - 1, index + 1, append);
  fib(n - 2, index + 1 + fib_calls(n - 1), append);
}

outcome run_fib() {
  const one_processor home(1);
  const cleaner at_end;
  const std::string path = scratch.file("fib");
  const stopwatch clock;
  buffered_file out(path);
  auto append = [&](long long index) {
    appended text;
    fill(text, index);
    out.append(text.data(), text.size());
  };
  fib(opaque(fib_number()), 0, append);
  out.close();
  const double seconds = clock.seconds();
  return plain_outcome(digest_of(path), fib_calls(fib_number()), seconds);
}

outcome run_fib_unbuffered(int, unsigned) {
  const one_processor home(1);
  const cleaner at_end;
  const std::string path = scratch.file("fib");
  const stopwatch clock;
  descriptor out(path);
  auto append = [&](long long index) {
    appended text;
    fill(text, index);
    out.write(text.data(), text.size());
  };
  fib(opaque(fib_number()), 0, append);
  out.close();
  const double seconds = clock.seconds();
  return plain_outcome(digest_of(path), fib_calls(fib_number()), seconds);
}

[[gnu::noinline]] void count_one(long& v) { v = v + 1; }

outcome run_slot() {
  long value = 0;
  const stopwatch clock;
  for (int round = 0; round < slot_rounds; ++round)
    for (int i = 0; i < slot_batch; ++i) count_one(value);
  return plain_outcome(value, value, clock.seconds());
}

void write_group(const records::collection& c, records::group g, buffered_file& out) {
  if (g.is_leaf()) return records::write_leaf(c, g.from, [&out](std::string_view text) { out.append(text); });
  out.append(g.first_row());
  records::for_each_part(g, [&](records::group part) { write_group(c, part, out); });
  out.append(g.last_row());
}

outcome run_rows(int index) {
  const one_processor home(1);
  const cleaner at_end;
  const records::collection c = collection_of(index);
  const std::string path = scratch.file("rows");
  const stopwatch clock;
  buffered_file out(path);
  write_group(c, {0, c.leaves}, out);
  out.close();
  const double seconds = clock.seconds();
  return plain_outcome(digest_of(path), c.leaves, seconds);
}

outcome run_blocked() {
  const one_processor home(1);
  const cleaner at_end;
  const std::string path = scratch.file("blocked");
  const long count = blocked_tasks() * appends_of_a_task;
  const stopwatch clock;
  buffered_file out(path);
  for (long i = 0; i < count; ++i) {
    appended text;
    fill(text, i);
    out.append(text.data(), text.size());
  }
  out.close();
  const double seconds = clock.seconds();
  return plain_outcome(digest_of(path), count, seconds);
}

/// What a careful program does by hand: space in advance, then a write and a synchronisation for each
/// megabyte, and the final name last.
outcome run_durable() {
  const one_processor home(1);
  const cleaner at_end;
  const std::string path = scratch.file("durable"), part = path + ".part";
  const long count = durable_appends();
  const stopwatch clock;
  {
    descriptor out(part);
    const auto size = static_cast<off_t>(count) * static_cast<off_t>(append_size);
    if (posix_fallocate(out.number(), 0, size) != 0) fail("fallocate", part);
    std::string buffer;
    buffer.reserve(commit_size + append_size);
    const auto commit = [&] {
      out.write(buffer.data(), buffer.size());
      out.synchronise();
      buffer.clear();
    };
    for (long i = 0; i < count; ++i) {
      appended text;
      fill(text, i);
      buffer.append(text.data(), text.size());
      if (buffer.size() >= commit_size) commit();
    }
    commit();
    if (fsync(out.number()) != 0) fail("fsync", part);
    out.close();
    std::filesystem::rename(part, path);
    const descriptor folder(std::filesystem::path(path).parent_path(), O_RDONLY | O_DIRECTORY);
    if (fsync(folder.number()) != 0) fail("fsync", folder.path());
  }
  const double seconds = clock.seconds();
  return plain_outcome(digest_of(path), count, seconds);
}

/// The million entries of an index, read and added up.
outcome run_open() {
  const std::string path = index_of_segments();
  const stopwatch clock;
  const descriptor in(path, O_RDONLY);
  std::vector<char> all(std::filesystem::file_size(path));
  in.read(all.data(), all.size(), 0);
  digest d;
  d.add(all.data(), all.size());
  const long long value = opaque(d.value()) != 0 ? segment_count * static_cast<long long>(segment_length) : 0;
  return plain_outcome(value, segment_count, clock.seconds());
}

/// The same reads from a file that holds the whole stream: what is beyond this, finding the segment costs.
outcome run_seek() {
  const descriptor in(plain_of_segments(), O_RDONLY);
  long long sum = 0;
  const stopwatch clock;
  for (long i = 0; i < seeks; ++i) {
    long long word = 0;
    in.read(reinterpret_cast<char*>(&word), sizeof word, seek_offset(i));
    sum += word >> 8;
  }
  return plain_outcome(sum, seeks, clock.seconds());
}

outcome run(int index, unsigned workers) {
  switch (problems[index].what) {
    case fib_plain:
    case fib_parts:
      return run_fib();
    case slot:
      return run_slot();
    case rows:
      return run_rows(index);
    case blocked:
      return run_blocked();
    case durable:
      return run_durable();
    case bzip:
      return run_compressor({"bzip2", "-9", "-c"}, compressed::as_stock, workers);
    case open_segments:
      return run_open();
    case seek_segments:
      break;
  }
  return run_seek();
}

bool fits_fib_alone(int index, unsigned workers) { return is(index, fib_plain) && workers == 1; }

const registration entry("serial", run, fits_one_worker);
const registration unbuffered("serial-unbuffered", run_fib_unbuffered, fits_fib_alone);

}  // namespace
}  // namespace weft_bench
