// SPDX-License-Identifier: BSL-1.0
// The header of a grid file: what it holds, and which version of its values is valid.
#pragma once

#include <weft/io/crc32c.hpp>
#include <weft/io/file.hpp>
#include <weft/ooc/aligned_buffer.hpp>
#include <weft/ooc/grid_layout.hpp>

#include <cstring>
#include <optional>
#include <type_traits>

namespace weft::inline WEFT_ABI::ooc {

/// What the file says of itself, in the first bytes of each of its two header pages; little-endian, without
/// gaps. The valid page with the larger generation counts, so that one that is half written does no harm.
struct grid_header {
  char magic[8];               ///< "weftgrid"
  std::uint32_t format;        ///< version of the format: 1
  std::uint32_t element;       ///< bytes of an element: 4 (float) or 8 (double)
  std::uint32_t layout;        ///< ooc::layout
  std::uint32_t version;       ///< which values are valid: 0 or 1
  std::uint64_t rows;          ///< inner rows
  std::uint64_t columns;       ///< inner columns
  std::uint32_t fields;        ///< coefficients per point
  std::uint32_t border;        ///< rows and columns of the boundary, on each side
  std::uint64_t tile_rows;     ///< rows of a tile
  std::uint64_t tile_columns;  ///< columns of a tile
  std::uint64_t sweeps;        ///< sweeps that the valid values have seen
  std::uint64_t generation;    ///< grows with each change; even ones lie in the first page
  std::uint32_t state;         ///< detail::grid_state
  std::uint32_t checksum;      ///< CRC-32C of all before
};
static_assert(sizeof(grid_header) == 88 && std::is_trivially_copyable_v<grid_header>);

namespace detail {

/// Whether the values of a file are those of a finished pass.
enum class grid_state : std::uint32_t {
  empty,  ///< not yet: the file is being filled
  filled  ///< yes
};

inline constexpr char grid_magic[8] = {'w', 'e', 'f', 't', 'g', 'r', 'i', 'd'};

inline std::uint32_t checksum(const grid_header& h) noexcept {
  return io::crc32c(&h, offsetof(grid_header, checksum));
}

/// Whether all places in the file of such a grid can be computed and addressed. (In floating point, rounded
/// up, so that nothing overflows.)
inline bool addressable(const grid_geometry& g) noexcept {
  const auto rows = static_cast<double>(g.rows), columns = static_cast<double>(g.columns);
  const auto border = static_cast<double>(g.border), element = static_cast<double>(g.element);
  const auto tile_rows = static_cast<double>(g.tile_rows), tile_columns = static_cast<double>(g.tile_columns);
  const double versions = 2 + static_cast<double>(g.fields);
  const double tiles = (rows / tile_rows + 1) * (columns / tile_columns + 1);
  const double tile = tile_rows * (tile_columns * element + file_alignment) + 5 * file_alignment;
  return tiles * tile * versions + 2 * border * (rows + columns + 2 * border) * element < 0x1p62;
}

/// Writes the header into its page, and brings it to the device. `page`: one of file_alignment bytes.
inline void write_header(io::file& f, grid_header h, void* page) {
  h.checksum = checksum(h);
  std::memset(page, 0, file_alignment);
  std::memcpy(page, &h, sizeof h);
  f.write_at(page, file_alignment, h.generation % 2 * file_alignment);
  f.sync_data();
}

/// The header that counts.
/// *Throws*: weft::error that says what is wrong with the file, std::system_error.
inline grid_header read_header(const io::file& f, void* page) {
  const auto refuse = [&f](const std::string& why) {
    throw error("weft: '" + f.path() + "' is not a valid grid file: " + why);
  };
  std::optional<grid_header> found;
  bool ours = false;
  for (std::uint64_t which = 0; which < 2; ++which) {
    const std::size_t got = f.read_at(page, file_alignment, which * file_alignment);
    if (got < sizeof(grid_header)) continue;
    grid_header h;
    std::memcpy(&h, page, sizeof h);
    if (std::memcmp(h.magic, grid_magic, sizeof grid_magic) != 0) continue;
    ours = true;
    if (h.checksum == checksum(h) && h.generation % 2 == which &&
        (!found || found->generation < h.generation))
      found = h;
  }
  if (!ours) refuse("it does not begin with a header");
  if (!found) refuse("the checksums of its headers are wrong");
  if (found->format != 1)
    refuse("it has format " + std::to_string(found->format) + "; this version of weft reads format 1");
  if (found->layout > static_cast<std::uint32_t>(layout::optimized) || found->version > 1 ||
      found->state > static_cast<std::uint32_t>(grid_state::filled) || found->rows == 0 ||
      found->columns == 0 || found->tile_rows == 0 || found->tile_columns == 0 || found->border == 0 ||
      (found->element != 4 && found->element != 8) || found->tile_rows > found->rows ||
      found->tile_columns > found->columns ||
      !addressable({found->rows, found->columns, found->fields, found->element,
                    static_cast<layout>(found->layout), found->tile_rows, found->tile_columns,
                    found->border}))
    refuse("its header contradicts itself");
  if (found->state == static_cast<std::uint32_t>(grid_state::empty)) refuse("it was not filled to its end");
  return *found;
}

}  // namespace detail
}  // namespace weft::inline WEFT_ABI::ooc
