// SPDX-License-Identifier: BSL-1.0
// The appends as tasks, in both layouts; what a place in a stream costs at fork; durable commits; and reading
// a stream in a million segments.
#include "config.hpp"
#include "files.hpp"
#include "segments.hpp"

#include <weft/append.hpp>
#include <weft/weft.hpp>

#include <atomic>
#include <functional>
#include <span>
#include <thread>

namespace weft_bench {
namespace {

/// Times a run that appends to a file, from its creation to its final name. `value` is asked for afterwards.
template <class Value, class... Call>
outcome timed_append(unsigned workers, const std::string& path, const weft::append_options& options,
                     long long appends, const Value& value, Call&&... call) {
  weft::runtime rt({.workers = workers});
  rt.run([] {});
  const weft::counters before = rt.counters();
  const stopwatch clock;
  {
    weft::append_file out(path, options);
    rt.run(std::forward<Call>(call)..., out);
    out.close();
  }
  outcome o = plain_outcome(0, appends, clock.seconds());
  const weft::counters after = rt.counters();
  o.value = value();
  o.steals = static_cast<long long>(after.steals - before.steals);
  o.sleeps = static_cast<long long>(after.sleeps - before.sleeps);
  return o;
}

/// The bytes of a stream in either layout.
long long digest_of_stream(const std::string& path) {
  weft::append_reader in(path);
  std::vector<char> piece(std::size_t{1} << 20);
  digest d;
  while (const std::size_t n = in.read(std::as_writable_bytes(std::span(piece)))) d.add(piece.data(), n);
  return d.value();
}

/// In a frame of its own: it is large, and calls nest.
[[gnu::noinline]] void append_call(weft::append out, long long index) {
  appended text;
  fill(text, index);
  out.write(std::string_view(text.data(), text.size()));
}

void fib(int n, long long index, weft::append out) {
  append_call(out, index);
  if (n < 2) return;
  weft::fork(fib, n - 1, index + 1, out);
  weft::fork(fib, n - 2, index + 1 + fib_calls(n - 1), out);
}

outcome run_fib(int index, unsigned workers) {
  const one_processor home(workers);
  const cleaner at_end;
  const std::string path = scratch.file("fib");
  const weft::append_layout layout =
      is(index, fib_plain) ? weft::append_layout::plain : weft::append_layout::segmented;
  const int n = fib_number();
  return timed_append(
      workers, path, {.layout = layout, .commit_every = 0, .sync = false}, fib_calls(n),
      [&] { return digest_of_stream(path); }, fib, n, 0LL);
}

/// Forks tasks that only count, with the right to append or without.
template <bool Appending>
outcome run_slots(unsigned workers, bool inlining, bool readable = false) {
  const one_processor home(workers);
  const cleaner at_end;
  weft::runtime rt({.workers = workers, .inlining = inlining});
  std::vector<long> counted(slot_batch);
  const auto rounds = [&](int count, weft::append out) {
    for (int round = 0; round < count; ++round) {
      for (long& v : counted) {
        if constexpr (Appending)
          weft::fork([&v](weft::append) { v = v + 1; }, out);
        else
          weft::fork([&v] { v = v + 1; });
      }
      weft::sync();
    }
  };
  weft::append_file out(scratch.file("slots"), {.readable = readable, .commit_every = 0, .sync = false});
  rt.run(rounds, 10, out);
  counted.assign(slot_batch, 0);
  const weft::counters before = rt.counters();
  const stopwatch clock;
  rt.run(rounds, slot_rounds, out);
  outcome o = plain_outcome(0, static_cast<long long>(slot_batch) * slot_rounds, clock.seconds());
  for (const long v : counted) o.value += v;
  o.steals = static_cast<long long>(rt.counters().steals - before.steals);
  return o;
}

outcome run_slot(int, unsigned workers) { return run_slots<true>(workers, true); }
outcome run_no_slot(int, unsigned workers) { return run_slots<false>(workers, true); }
outcome run_slot_deferred(int, unsigned workers) { return run_slots<true>(workers, false); }
outcome run_slot_readable(int, unsigned workers) { return run_slots<true>(workers, false, true); }
outcome run_no_slot_deferred(int, unsigned workers) { return run_slots<false>(workers, false); }

void write_group(const records::collection& c, records::group g, weft::append out) {
  if (g.is_leaf()) return records::write_leaf(c, g.from, [&out](std::string_view text) { out.write(text); });
  out.write(g.first_row());
  records::for_each_part(g, [&](records::group part) { weft::fork(write_group, std::cref(c), part, out); });
  out.write(g.last_row());
}

outcome run_rows(int index, unsigned workers) {
  const one_processor home(workers);
  const cleaner at_end;
  const records::collection c = collection_of(index);
  const std::string path = scratch.file("rows");
  return timed_append(
      workers, path, {.commit_every = 0, .sync = false}, c.leaves, [&] { return digest_of(path); },
      write_group, std::cref(c), records::group{0, c.leaves});
}

/// The first task appends last, so nothing else can be placed before.
outcome run_blocked(int, unsigned workers) {
  const one_processor home(workers);
  const cleaner at_end;
  const std::string path = scratch.file("blocked");
  std::atomic<long> left = blocked_tasks() - 1;
  const auto part = [](long first, weft::append out) {
    for (long i = first; i < first + appends_of_a_task; ++i) append_call(out, i);
  };
  const auto all = [&](weft::append out) {
    weft::fork(
        [&](weft::append own) {
          // Relaxed, both: only the number matters.
          while (left.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
          part(0, own);
        },
        out);
    for (long i = 1; i < blocked_tasks(); ++i)
      weft::fork(
          [&, i](weft::append own) {
            part(i * appends_of_a_task, own);
            left.fetch_sub(1, std::memory_order_relaxed);
          },
          out);
  };
  return timed_append(
      workers, path, {.commit_every = 0, .sync = false}, blocked_tasks() * appends_of_a_task,
      [&] { return digest_of(path); }, all);
}

/// Appends in tasks of a megabyte each.
void append_many(long count, weft::append out) {
  constexpr long part = static_cast<long>(commit_size / append_size);
  for (long from = 0; from < count; from += part)
    weft::fork(
        [](long first, long last, weft::append own) {
          for (long i = first; i < last; ++i) append_call(own, i);
        },
        from, std::min(from + part, count), out);
}

outcome run_commits(unsigned workers, const weft::append_options& options) {
  const one_processor home(workers);
  const cleaner at_end;
  const std::string path = scratch.file("durable");
  return timed_append(
      workers, path, options, durable_appends(), [&] { return digest_of(path); }, append_many,
      durable_appends());
}

outcome run_durable(int, unsigned workers) {
  return run_commits(workers, {.commit_every = commit_size, .durable = true});
}
outcome run_log(int, unsigned workers) {
  return run_commits(workers, {.commit_every = commit_size, .durable = false, .sync = false});
}
outcome run_no_log(int, unsigned workers) { return run_commits(workers, {.commit_every = 0, .sync = false}); }

/// The eight bytes at a multiple of eight in the stream: they tell where they are.
std::uint64_t aligned_word(std::uint64_t position) { return records::scatter(position); }
/// The same anywhere.
long long word_at(std::uint64_t position) {
  const std::uint64_t first = position & ~7ull, bits = 8 * (position & 7);
  if (bits == 0) return static_cast<long long>(aligned_word(first));
  return static_cast<long long>(aligned_word(first) >> bits | aligned_word(first + 8) << (64 - bits));
}

outcome run_open(int, unsigned) {
  const std::string path = index_of_segments();
  const stopwatch clock;
  const weft::append_reader in(path);
  const double seconds = clock.seconds();
  return plain_outcome(static_cast<long long>(in.size()), static_cast<long long>(in.segments()), seconds);
}

outcome run_seek(int, unsigned) {
  const weft::append_reader in(index_of_segments());
  long long sum = 0;
  const stopwatch clock;
  for (long i = 0; i < seeks; ++i) {
    long long word = 0;
    in.pread(std::as_writable_bytes(std::span(&word, 1)), seek_offset(i));
    sum += word >> 8;
  }
  return plain_outcome(sum, seeks, clock.seconds());
}

/// Only finds where the same reads would look; what stands there is known.
outcome run_search(int, unsigned) {
  const weft::io::file index = weft::io::file::open_read(index_of_segments());
  const weft::stream::segment_map map = weft::stream::scan_index(index).segments;
  long long sum = 0;
  const stopwatch clock;
  for (long i = 0; i < seeks; ++i) {
    const std::uint64_t offset = seek_offset(i);
    const std::size_t segment = map.find(offset);
    sum += word_at(segment * segment_length + offset - map.start(segment)) >> 8;
  }
  return plain_outcome(sum, seeks, clock.seconds());
}

bool fits_fib(int index, unsigned) { return is(index, fib_plain) || is(index, fib_parts); }
bool fits_slot(int index, unsigned) { return is(index, slot); }
bool fits_rows(int index, unsigned) { return is(index, rows); }
bool fits_blocked(int index, unsigned workers) { return is(index, blocked) && workers > 1; }
bool fits_durable(int index, unsigned) { return is(index, durable); }
bool fits_open(int index, unsigned workers) { return is(index, open_segments) && workers == 1; }
bool fits_seek(int index, unsigned workers) { return is(index, seek_segments) && workers == 1; }

const registration fib_entry("weft", run_fib, fits_fib);
const registration slot_entry("weft", run_slot, fits_slot);
const registration no_slot_entry("weft-no-stream", run_no_slot, fits_slot);
const registration deferred_entry("weft-deferred", run_slot_deferred, fits_slot);
const registration readable_entry("weft-deferred-readable", run_slot_readable, fits_slot);
const registration no_deferred_entry("weft-deferred-no-stream", run_no_slot_deferred, fits_slot);
const registration rows_entry("weft", run_rows, fits_rows);
const registration blocked_entry("weft", run_blocked, fits_blocked);
const registration durable_entry("weft", run_durable, fits_durable);
const registration log_entry("weft-log-only", run_log, fits_durable);
const registration no_log_entry("weft-no-commits", run_no_log, fits_durable);
const registration open_entry("weft", run_open, fits_open);
const registration seek_entry("weft", run_seek, fits_seek);
const registration search_entry("weft-search-only", run_search, fits_seek);

constexpr unsigned segment_files = 2;

std::array<char, segment_length> segment_text(long segment) {
  std::array<char, segment_length> text;
  for (std::size_t i = 0; i < segment_length; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = aligned_word(static_cast<std::uint64_t>(segment) * segment_length + i);
    std::memcpy(text.data() + i, &word, sizeof word);
  }
  return text;
}

}  // namespace

std::string plain_of_segments() {
  const std::string path = scratch.file("keep-plain"), part = path + ".part";
  if (std::filesystem::exists(path)) return path;
  buffered_file out(part);
  for (long i = 0; i < segment_count; ++i) {
    const auto text = segment_text(i);
    out.append(text.data(), text.size());
  }
  out.close();
  std::filesystem::rename(part, path);
  return path;
}

/// Neighbours in the stream are never neighbours in a file.
std::string index_of_segments() {
  namespace stream = weft::stream;
  const std::string path = scratch.file("keep-segments");
  if (std::filesystem::exists(path)) return path;
  stream::reservation reserved = stream::reservation::to_write(path, true);
  stream::segment_index index(reserved.part(), reserved.salt(), reserved.in());
  for (unsigned f = 0; f < segment_files; ++f) {
    const std::string name = reserved.make_data_file(f).path();
    buffered_file out(name, O_WRONLY | O_APPEND);
    for (long i = f; i < segment_count; i += segment_files) {
      const auto text = segment_text(i);
      out.append(text.data(), text.size());
    }
    out.close();
  }
  for (long i = 0; i < segment_count; ++i) {
    const auto text = segment_text(i);
    index.add(static_cast<std::uint32_t>(i % segment_files),
              stream::data_header_size + static_cast<std::uint64_t>(i / segment_files) * segment_length,
              segment_length, weft::io::crc32c(text.data(), text.size()));
  }
  index.finish(false);
  reserved.publish(false);
  return path;
}

}  // namespace weft_bench
