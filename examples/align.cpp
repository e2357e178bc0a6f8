// SPDX-License-Identifier: BSL-1.0
// Aligns two sequences: edit distance, or local alignment (Smith-Waterman) with linear gaps. The directions
// of all cells, two bits each, go to a file, since they exceed memory; the alignment is traced back from
// there. usage: align [--local] a.fasta b.fasta [directory]     the first record of each file: letters, in
//                                                       either case; lines that begin with ; are comments
//        align [--local] --random length [directory]     two random sequences, one a mutation of the other
#include <weft/ooc.hpp>
#include <weft/wavefront.hpp>
#include <weft/weft.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

namespace {

/// Scores, of which the alignment maximises the sum. Local: it may begin and end anywhere, and is not
/// negative.
struct scoring {
  int match, mismatch, gap;
  bool local;
};
constexpr scoring edit_distance = {0, -1, -1, false};
constexpr scoring smith_waterman = {2, -3, -4, true};

enum direction : unsigned { stop, diagonal, up, left };

constexpr int lanes = weft::wavefront::native_lanes<std::int16_t>;
using vector = weft::wavefront::vector<std::int16_t, lanes>;
constexpr std::size_t tile_edge = 2048;
constexpr std::size_t steps_per_word = 8;  // directions of 2 bits in 16

/// Places of the directions of a tile. A strip has a row in each lane; at step p, lane l is at column p - l.
struct direction_layout {
  std::size_t strips, words;
  direction_layout(std::size_t rows, std::size_t columns)
      : strips((rows + lanes - 1) / lanes),
        words((columns + lanes - 1 + steps_per_word - 1) / steps_per_word) {}
  static constexpr std::size_t most_bytes() {
    return (tile_edge + lanes - 1) / lanes * ((tile_edge + lanes + steps_per_word - 2) / steps_per_word) *
           sizeof(vector);
  }
  unsigned at(const std::byte* directions, std::size_t row, std::size_t column) const {
    const std::size_t lane = row % lanes, step = column + lane;
    std::uint16_t word;
    std::memcpy(&word, directions + ((row / lanes * words + step / steps_per_word) * lanes + lane) * 2, 2);
    return word >> (2 * (steps_per_word - 1 - step % steps_per_word)) & 3;
  }
};

struct place {
  long score = 0;
  std::size_t row = 0, column = 0;
};

template <int... I>
vector shifted(std::int16_t first, const vector& v, std::integer_sequence<int, I...>) {
  vector begin{};
  begin[lanes - 1] = first;
  return __builtin_shufflevector(begin, v, (lanes - 1 + I)...);
}
/// The lanes moved up by one, with a new first one.
vector shifted(std::int16_t first, const vector& v) {
  return shifted(first, v, std::make_integer_sequence<int, lanes>{});
}

/// One tile: `above`, the scores of the row above it, becomes its last row; `beside`, the corner and the
/// column before it, the corner and column for the next tile. *Returns*: the largest score, and where.
template <bool Local>
place align_tile(const scoring& s, const char* a, std::size_t rows, const char* b, std::size_t columns,
                 std::vector<std::int32_t>& above, std::vector<std::int32_t>& beside, std::byte* directions) {
  const std::int32_t base =
      beside[0];  // all scores of a tile are near that of its corner, so 16 bits suffice
  const std::int32_t next_corner = above[columns - 1];
  const auto small = [base](std::int32_t score) { return static_cast<std::int16_t>(score - base); };
  const auto floor = static_cast<std::int16_t>(Local ? std::max(-base, -30000) : -32000);
  const direction_layout layout(rows, columns);
  std::vector<std::int16_t> row(columns + lanes);
  for (std::size_t c = 0; c < columns; ++c) row[c] = small(above[c]);
  const vector match = vector{} + static_cast<std::int16_t>(s.match);
  const vector mismatch = vector{} + static_cast<std::int16_t>(s.mismatch);
  const vector one = vector{} + std::int16_t{1}, two = one + one, three = two + one;
  std::int16_t corner = 0;  // of the strip, in front of its first row
  place best{Local ? 0 : -(1L << 40), 0, 0};
  for (std::size_t strip = 0; strip < layout.strips; ++strip) {
    const std::size_t first = strip * lanes, height = std::min<std::size_t>(lanes, rows - first);
    vector letters{}, text{}, now{}, above_before{}, lane{};
    for (std::size_t l = 0; l < lanes; ++l) {
      letters[l] = l < height ? a[first + l] : -1;
      now[l] = l < height ? small(beside[1 + first + l]) : std::int16_t{0};
      lane[l] = static_cast<std::int16_t>(l);
    }
    const std::int16_t below_corner = now[height - 1];
    above_before[0] = corner;
    for (std::size_t l = 1; l < height; ++l) above_before[l] = now[l - 1];
    vector most = vector{} + std::int16_t{-32768}, most_at{}, word{};
    std::byte* to = directions + strip * layout.words * sizeof(vector);
    const std::size_t steps = columns + lanes - 1;
    const auto step = [&](std::size_t p, auto inside, auto whole) __attribute__((always_inline)) {
      const vector north = shifted(p < columns ? row[p] : std::int16_t{0}, now);
      text = shifted(p < columns ? b[p] : std::int16_t{-2}, text);
      const vector by_diagonal = above_before + (letters == text ? match : mismatch);
      const vector by_north = north + static_cast<std::int16_t>(s.gap),
                   by_west = now + static_cast<std::int16_t>(s.gap);
      vector score = by_diagonal > by_north ? by_diagonal : by_north;
      score = score > by_west ? score : by_west;
      vector chosen = score == by_diagonal ? one : (score == by_north ? two : three);
      if constexpr (Local) {
        chosen = score > floor ? chosen : vector{};
        score = score > floor ? score : vector{} + floor;
      }
      above_before = north;
      if constexpr (decltype(inside)::value) {
        now = score;
        if constexpr (Local) {
          const auto larger = score > most;
          most = larger ? score : most;
          most_at = larger ? vector{} + static_cast<std::int16_t>(p) : most_at;
        }
      } else {  // some lanes are before their first column, or behind the last one
        const vector column = static_cast<std::int16_t>(p) - lane;
        const auto in = (column >= 0) & (column < static_cast<std::int16_t>(columns));
        now = in ? score : now;
        const auto larger = in & (score > most) & (lane < static_cast<std::int16_t>(height));
        most = larger ? score : most;
        most_at = larger ? vector{} + static_cast<std::int16_t>(p) : most_at;
      }
      word = (word << 2) | chosen;
      if (p % steps_per_word == steps_per_word - 1) {
        std::memcpy(to, &word, sizeof word);
        to += sizeof word;
      }
      const std::size_t bottom = decltype(whole)::value ? lanes : height;
      if (p + 1 >= bottom) row[p + 1 - bottom] = now[bottom - 1];  // nobody needs that place any more
    };
    const std::size_t ramp = std::min<std::size_t>(lanes - 1, columns);
    std::size_t p = 0;
    if (height == lanes) {
      for (; p < ramp; ++p) step(p, std::false_type{}, std::true_type{});
      for (; p < columns; ++p) step(p, std::true_type{}, std::true_type{});
      for (; p < steps; ++p) step(p, std::false_type{}, std::true_type{});
    }
    for (; p < steps; ++p) step(p, std::false_type{}, std::false_type{});
    if (const std::size_t missing = (steps_per_word - steps % steps_per_word) % steps_per_word;
        missing != 0) {
      word = word << static_cast<std::int16_t>(2 * missing);
      std::memcpy(to, &word, sizeof word);
    }
    for (std::size_t l = 0; l < height; ++l) {
      beside[1 + first + l] = base + now[l];
      if (base + most[l] > best.score)
        best = {base + most[l], first + l, static_cast<std::size_t>(most_at[l]) - l};
    }
    corner = below_corner;
  }
  for (std::size_t c = 0; c < columns; ++c) above[c] = base + row[c];
  beside[0] = next_corner;
  return best;
}

struct alignment {
  long score = 0;
  std::size_t matches = 0, mismatches = 0, gaps = 0;
};

/// Aligns with the directions in a file, and traces the alignment back.
alignment align(weft::runtime& rt, const scoring& s, const std::string& a, const std::string& b,
                const std::string& directory) {
  const std::size_t down = (a.size() + tile_edge - 1) / tile_edge,
                    across = (b.size() + tile_edge - 1) / tile_edge;
  const std::string path = directory + "/align-directions";
  const weft::io::file file = weft::io::file::create(path, true);
  // Past the page cache, where the file system allows that: nobody needs the directions before the end.
  ::fcntl(file.descriptor(), F_SETFL, ::fcntl(file.descriptor(), F_GETFL) | O_DIRECT);
  struct remove {
    const std::string& path;
    ~remove() { std::remove(path.c_str()); }
  } const at_end{path};
  const std::size_t slot = weft::ooc::aligned(direction_layout::most_bytes());
  const auto extent = [](std::size_t number, std::size_t size) {
    return std::min(tile_edge, size - number * tile_edge);
  };

  std::vector<std::vector<std::int32_t>> rows(across), columns(down);
  for (std::size_t j = 0; j < across; ++j)
    for (std::size_t c = 0; c < extent(j, b.size()); ++c)
      rows[j].push_back(s.local ? 0 : s.gap * static_cast<std::int32_t>(j * tile_edge + c + 1));
  for (std::size_t i = 0; i < down; ++i)
    for (std::size_t r = 0; r <= extent(i, a.size()); ++r)
      columns[i].push_back(s.local ? 0 : s.gap * static_cast<std::int32_t>(i * tile_edge + r));
  weft::ooc::memory_budget memory;
  std::vector<weft::ooc::aligned_buffer> buffers;
  for (unsigned i = 0; i < 2 * rt.workers() + 4; ++i) buffers.emplace_back(memory, slot);
  std::vector<place> best(down * across);
  weft::ooc::io_queue queue;
  rt.run([&] {
    std::size_t number = 0;
    for (std::size_t diagonal = 0; diagonal < down + across - 1; ++diagonal)
      for (std::size_t i = diagonal < across ? 0 : diagonal - across + 1; i < std::min(down, diagonal + 1);
           ++i) {
        const std::size_t j = diagonal - i;
        weft::ooc::aligned_buffer& buffer = buffers[number++ % buffers.size()];
        weft::fork(
            {.name = "align a tile"},
            [&, i, j](std::vector<std::int32_t>& above, std::vector<std::int32_t>& beside,
                      weft::ooc::aligned_buffer& to) {
              place p = (s.local ? align_tile<true>
                                 : align_tile<false>)(s, a.data() + i * tile_edge, extent(i, a.size()),
                                                      b.data() + j * tile_edge, extent(j, b.size()), above,
                                                      beside, to.data());
              best[i * across + j] = {p.score, p.row + i * tile_edge, p.column + j * tile_edge};
            },
            weft::update(weft::borrow(rows[j])), weft::update(weft::borrow(columns[i])),
            weft::update(weft::borrow(buffer)));
        weft::fork(
            {.name = "write directions", .priority = 1, .event = true},
            [&, i, j](const weft::ooc::aligned_buffer& from) {
              queue.write(file, (i * across + j) * slot, from.data(), slot, weft::this_task::hold());
            },
            weft::read(weft::borrow(buffer)));
      }
  });

  place end{rows.back().back(), a.size() - 1, b.size() - 1};
  if (s.local)
    end = *std::max_element(best.begin(), best.end(),
                            [](const place& x, const place& y) { return x.score < y.score; });
  alignment found{end.score};
  std::size_t r = end.row + 1, c = end.column + 1, held = SIZE_MAX;  // letters of a and b that are left
  long sum = 0;
  while (r > 0 && c > 0) {
    const std::size_t i = (r - 1) / tile_edge, j = (c - 1) / tile_edge;
    if (held != i * across + j) {
      held = i * across + j;
      if (file.read_at(buffers[0].data(), slot, held * slot) != slot)
        throw std::runtime_error("the directions are gone");
    }
    const direction_layout layout(extent(i, a.size()), extent(j, b.size()));
    const unsigned d = layout.at(buffers[0].data(), (r - 1) % tile_edge, (c - 1) % tile_edge);
    if (d == stop) break;
    if (d == diagonal) {
      const bool same = a[r - 1] == b[c - 1];
      same ? ++found.matches : ++found.mismatches;
      sum += same ? s.match : s.mismatch;
    } else {
      found.gaps += 1;
      sum += s.gap;
    }
    if (d != left) --r;
    if (d != up) --c;
  }
  if (!s.local) {
    found.gaps += r + c;
    sum += s.gap * static_cast<long>(r + c);
  }
  if (sum != found.score) throw std::runtime_error("the alignment has another score than its cells");
  return found;
}

/// The letters of the first record of a FASTA file, as capitals.
std::string first_record(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::system_error(errno, std::generic_category(), "cannot read " + path);
  std::string line, letters;
  bool begun = false;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.pop_back();
    if (line.empty() || line.front() == ';') continue;
    if (line.front() == '>') {
      if (begun) break;
      begun = true;
      continue;
    }
    begun = true;
    for (const char c : line) {
      const bool lower = c >= 'a' && c <= 'z';
      if (!lower && !(c >= 'A' && c <= 'Z'))
        throw std::runtime_error(path + ": line " + std::to_string(number) +
                                 " holds a character that is no letter");
      letters += static_cast<char>(lower ? c - 'a' + 'A' : c);
    }
  }
  if (in.bad()) throw std::runtime_error("cannot read " + path);
  if (letters.empty()) throw std::runtime_error(path + " has no sequence");
  return letters;
}

/// A random sequence, and one that differs in every tenth letter or so.
std::pair<std::string, std::string> random_pair(std::size_t length) {
  std::uint64_t state = 1;
  const auto next = [&state](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  std::string a, b;
  while (a.size() < length) a += "ACGT"[next(4)];
  for (const char c : a) {
    const std::uint64_t what = next(30);
    if (what == 0) continue;
    if (what == 1) b += "ACGT"[next(4)];
    b += what == 2 ? "ACGT"[next(4)] : c;
  }
  return {a, b};
}

/// The score alone, by two rows.
long plain_score(const scoring& s, const std::string& a, const std::string& b) {
  std::vector<long> row(b.size() + 1), above(b.size() + 1);
  for (std::size_t c = 0; c <= b.size(); ++c) above[c] = s.local ? 0 : s.gap * static_cast<long>(c);
  long best = 0;
  for (std::size_t r = 1; r <= a.size(); ++r) {
    row[0] = s.local ? 0 : s.gap * static_cast<long>(r);
    for (std::size_t c = 1; c <= b.size(); ++c) {
      row[c] = std::max({above[c - 1] + (a[r - 1] == b[c - 1] ? s.match : s.mismatch), above[c] + s.gap,
                         row[c - 1] + s.gap});
      if (s.local) best = std::max(best, row[c] = std::max(row[c], 0L));
    }
    row.swap(above);
  }
  return s.local ? best : above.back();
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool local = std::erase(words, "--local") != 0;
  std::string a, b, directory = "/tmp";
  bool check = false;
  if (!words.empty() && words[0] == "--random") {
    const std::size_t length = words.size() > 1 ? std::strtoul(words[1].c_str(), nullptr, 10) : 5000;
    std::tie(a, b) = random_pair(length);
    if (a.empty() || b.empty()) throw std::runtime_error("the length of random sequences is too small");
    check = length <= 20000;
    if (words.size() > 2) directory = words[2];
  } else if (words.size() >= 2) {
    a = first_record(words[0]);
    b = first_record(words[1]);
    if (words.size() > 2) directory = words[2];
  } else {
    std::fprintf(stderr,
                 "usage: align [--local] a.fasta b.fasta [directory]\n"
                 "       align [--local] --random length [directory]\n");
    return 2;
  }
  const scoring& s = local ? smith_waterman : edit_distance;
  weft::runtime rt;
  const auto start = std::chrono::steady_clock::now();
  const alignment found = align(rt, s, a, b, directory);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double cells = static_cast<double>(a.size()) * static_cast<double>(b.size());
  std::printf("%s %ld: %zu matches, %zu mismatches, %zu gaps\n", local ? "local score" : "edit distance",
              local ? found.score : -found.score, found.matches, found.mismatches, found.gaps);
  std::fprintf(stderr, "%zu x %zu letters, %.3f s, %.2f thousand million cells/s, %.0f MB of directions\n",
               a.size(), b.size(), seconds, 1e-9 * cells / seconds, 0.25e-6 * cells);
  if (check && plain_score(s, a, b) != found.score) {
    std::fprintf(stderr, "the plain program finds %ld\n", plain_score(s, a, b));
    return 1;
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
