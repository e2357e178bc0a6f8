// SPDX-License-Identifier: BSL-1.0
// A grid of values, with constant coefficients for each point, in one file.
#pragma once

#include <weft/flow/runtime.hpp>
#include <weft/ooc/detail/direct_file.hpp>
#include <weft/ooc/grid_header.hpp>
#include <weft/ooc/io_queue.hpp>

#include <span>
#include <vector>

namespace weft::inline WEFT_ABI::ooc {

/// What a new grid file is like.
struct grid_options {
  std::size_t rows = 0;                 ///< inner rows, without the boundary; at least 1
  std::size_t columns = 0;              ///< inner columns; at least 1
  ooc::layout layout = layout::strips;  ///< the order in the file
  std::size_t tile_rows = 0;            ///< rows of a tile; 0: 16 where tiles are whole rows, else 256
  std::size_t tile_columns = 0;         ///< columns of a tile; 0: 256; ignored where tiles are whole rows
  std::size_t border = 1;               ///< rows and columns of the boundary, on each side; at least 1
  bool overwrite = false;               ///< replace an existing file; otherwise that is an error (EEXIST)
  bool direct = true;                   ///< bypass the page cache where the file system allows it
  io_options io = {};                   ///< how its file is read and written
};

/// A grid of `rows` x `columns` points of type T with `Fields` coefficients each, and a boundary of `border`
/// rows or columns of values on each side, in one file (docs/reference/grid-format.md). Rows and columns are
/// numbered from 0, the outermost ones of the northern and the western boundary, to
/// rows() + 2 * border() - 1 and columns() + 2 * border() - 1.
/// *Throws*: weft::error that says what is wrong with the options or the file; std::system_error with path
/// and offset; std::bad_alloc.
/// *Suspends*: fill() as runtime::run; the others block the thread.
/// *Thread safety*: one thread at a time.
template <class T, std::size_t Fields>
class grid_file {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "weft: a grid holds float or double");

 public:
  /// The type of the values and coefficients.
  using value_type = T;
  /// Coefficients per point.
  static constexpr std::size_t fields = Fields;

  /// Creates a file, with room on the device for all of it where the file system can reserve that; it is
  /// valid when fill() has returned. *Throws*: as the class; before an existing file is emptied if the
  /// options are wrong, and after any other failure there is no file.
  grid_file(const std::string& path, const grid_options& options)
      : grid_file(path, options, checked_(options), std::make_unique<io_queue>(options.io)) {}
  /// Opens an existing file. `direct`, `io`: as in grid_options.
  explicit grid_file(const std::string& path, bool direct = true, const io_options& io = {})
      : file_(io::file::open_write(path), direct), queue_(std::make_unique<io_queue>(io)) {
    page_ = aligned_buffer(memory_, file_alignment);
    if (file_.get().size() < 2 * file_alignment)
      throw error("weft: '" + path + "' is not a valid grid file: it is too short");
    header_ = detail::read_header(file_.get(), page_.data());
    const auto differs = [&path](const std::string& what, std::uint64_t has, std::uint64_t wanted) {
      throw error("weft: '" + path + "' holds another kind of grid: " + what + " " + std::to_string(has) +
                  ", expected " + std::to_string(wanted));
    };
    if (header_.element != sizeof(T)) differs("bytes per element", header_.element, sizeof(T));
    if (header_.fields != Fields) differs("coefficients per point", header_.fields, Fields);
    geometry_ = {header_.rows,
                 header_.columns,
                 Fields,
                 sizeof(T),
                 static_cast<ooc::layout>(header_.layout),
                 header_.tile_rows,
                 header_.tile_columns,
                 header_.border};
    if (file_.get().size() < geometry_.file_bytes())
      throw error("weft: '" + path + "' is not a valid grid file: it is too short");
    const file_extent edge = geometry_.boundary();
    boundary_ = aligned_buffer(memory_, edge.size);
    read_(edge, boundary_.data());
  }

  /// Inner rows.
  std::size_t rows() const noexcept { return geometry_.rows; }
  /// Inner columns.
  std::size_t columns() const noexcept { return geometry_.columns; }
  /// Rows and columns of the boundary, on each side.
  std::size_t border() const noexcept { return geometry_.border; }
  /// Where everything lies in the file.
  const grid_geometry& geometry() const noexcept { return geometry_; }
  /// Sweeps that the values have seen since fill().
  std::uint64_t sweeps() const noexcept { return header_.sweeps; }
  /// Whether the page cache is bypassed.
  bool direct() const noexcept { return file_.direct(); }

  /// Gives all values and coefficients: `f(row, column, field)` returns those of a point, field 0 the value,
  /// 1 to Fields the coefficients. Boundary points have a value only. Called in parallel, in no particular
  /// order.
  /// *Effects*: the file is valid, and on the device, when this returns; after a failure it is not valid.
  template <class F>
    requires std::is_invocable_r_v<T, const F&, std::size_t, std::size_t, int>
  void fill(runtime& rt, const F& f) {
    begin_fill(f);
    fill_tiles(rt, 0, geometry_.tiles(), f);
    end_fill(0);
  }
  /// The same in parts: first the boundary, then tiles in any order, at last the end, with the number of
  /// sweeps that the values have seen. Until then the file is not valid.
  template <class F>
  void begin_fill(const F& f) {
    cache_ = {};
    cached_ = no_row;
    if (header_.state != 0 || unsettled_)
      set_header_(detail::grid_state::empty, header_.version, header_.sweeps);
    fill_boundary_(f);
  }
  /// The tiles from `first` to before `end`.
  template <class F>
  void fill_tiles(runtime& rt, std::size_t first, std::size_t end, const F& f) {
    std::vector<buffers> pool(rt.workers() + 1);
    for (buffers& b : pool) {
      b.values = aligned_buffer(memory_, geometry_.values_bytes());
      b.fields = aligned_buffer(memory_, geometry_.fields_bytes());
    }
    rt.run([&] {
      for (std::size_t t = first; t < end; ++t) {
        buffers& of = pool[t % pool.size()];
        fork({.name = "fill a tile"}, [this, t, &f](buffers& b) { fill_tile_(t, f, b); }, update(borrow(of)));
        fork(
            {.name = "write a tile", .event = true},
            [this, t](const buffers& b) {
              write_values(t, 0, b.values.data());
              for (std::size_t i = 0; i < geometry_.field_extents(); ++i) {
                const file_extent e = geometry_.field_extent(t, i);
                queue_->write(file_.get(), e.offset, b.fields.data() + e.at, e.size, this_task::hold());
              }
            },
            read(borrow(of)));
      }
    });
  }
  /// All tiles have been filled.
  void end_fill(std::uint64_t sweeps) {
    file_.get().sync_data();
    set_header_(detail::grid_state::filled, 0, sweeps);
  }

  /// Reads one row, with its boundary values: columns() + 2 * border() elements.
  /// *Requires*: there is such a row, and `to` has room.
  void read_row(std::size_t row, std::span<T> to) {
    check_valid();
    const std::size_t m = columns(), b = border();
    if (row >= rows() + 2 * b || to.size() < m + 2 * b)
      throw std::out_of_range("weft: row " + std::to_string(row) + " of a grid of " + std::to_string(rows()) +
                              " rows, into " + std::to_string(to.size()) + " elements");
    if (row < b || row >= rows() + b) {
      std::copy_n(border_row(row), m + 2 * b, to.begin());
      return;
    }
    const std::size_t across = geometry_.tiles_across(), line = (row - b) / geometry_.tile_rows;
    const std::size_t size = geometry_.values_bytes();
    if (cached_ != line) {
      cached_ = no_row;
      if (cache_.size() == 0) cache_ = aligned_buffer(memory_, across * size);
      for (std::size_t j = 0; j < across; ++j)
        read_(geometry_.values(line * across + j, header_.version), cache_.data() + j * size);
      cached_ = line;
    }
    for (std::size_t i = 0; i < b; ++i) {
      to[i] = border_column(i)[row - b];
      to[m + b + i] = border_column(m + b + i)[row - b];
    }
    for (std::size_t j = 0; j < across; ++j) {
      const tile_shape t = geometry_.tile(line * across + j);
      geometry_.row_of_tile(t, row - b - t.row, reinterpret_cast<const T*>(cache_.data() + j * size),
                            to.data() + b + t.column);
    }
  }

  /// Removes the file; nothing else may be done with the object then.
  void remove() {
    if (::unlink(file_.get().path().c_str()) != 0) io::fail(errno, "remove", file_.get().path());
  }

  /// A row of the boundary, with corners. *Requires*: it is less than border(), or at least rows() +
  /// border().
  const T* border_row(std::size_t row) const noexcept {
    return elements<const T>(boundary_) + (row < border() ? row : row - rows()) * (columns() + 2 * border());
  }
  /// A column of the boundary, without corners. *Requires*: as border_row.
  const T* border_column(std::size_t column) const noexcept {
    return elements<const T>(boundary_) + 2 * border() * (columns() + 2 * border()) +
           (column < border() ? column : column - columns()) * rows();
  }
  /// The boundary next to inner points: the northern row, from the column before the first inner one on.
  const T* north() const noexcept { return border_row(border() - 1) + border() - 1; }
  /// The southern row, in the same way.
  const T* south() const noexcept { return border_row(rows() + border()) + border() - 1; }
  /// The western column.
  const T* west() const noexcept { return border_column(border() - 1); }
  /// The eastern column.
  const T* east() const noexcept { return border_column(columns() + border()); }
  /// Bytes of memory for the boundary.
  std::size_t boundary_bytes() const noexcept { return boundary_.size(); }

  /// The queue that reads and writes the file.
  io_queue& queue() noexcept { return *queue_; }
  /// Reads and writes the file from now on with an engine of the caller, with so many transfers at once.
  void use(std::unique_ptr<io_engine> engine, unsigned in_flight) {
    queue_ = std::make_unique<io_queue>(std::move(engine), in_flight);
  }
  /// The open file.
  io::file& file() noexcept { return file_.get(); }
  /// Which version of the values is valid.
  unsigned version() const noexcept { return header_.version; }

  /// Starts to read the values of a tile. *Requires*: called in a task with the option `event`, which ends
  /// when they have come; as the next four.
  void read_values(std::size_t tile, unsigned version, std::byte* to, const transfer_place& place = {}) {
    const file_extent e = geometry_.values(tile, version);
    queue_->read(file_.get(), e.offset, to, e.size, this_task::hold(), place);
  }
  /// Starts to read the coefficients of a tile.
  void read_fields(std::size_t tile, std::byte* to, const transfer_place& place = {}) {
    for (std::size_t i = 0; i < geometry_.field_extents(); ++i) {
      const file_extent e = geometry_.field_extent(tile, i);
      queue_->read(file_.get(), e.offset, to + e.at, e.size, this_task::hold(), place);
    }
  }
  /// Starts to read a part of the file.
  void read_part(const file_extent& e, std::byte* to, const transfer_place& place = {}) {
    queue_->read(file_.get(), e.offset, to + e.at, e.size, this_task::hold(), place);
  }
  /// Starts to read the first row of a tile, maybe with more behind it.
  void read_first_row(std::size_t tile, unsigned version, std::byte* to, const transfer_place& place = {}) {
    const file_extent e = geometry_.first_row(tile, version);
    queue_->read(file_.get(), e.offset, to, e.size, this_task::hold(), place);
  }
  /// Starts to write the values of a tile.
  void write_values(std::size_t tile, unsigned version, const std::byte* from,
                    const transfer_place& place = {}) {
    const file_extent e = geometry_.values(tile, version);
    queue_->write(file_.get(), e.offset, from, e.size, this_task::hold(), place);
  }
  /// The version `valid` of the values, which has been written completely, becomes the valid one, after so
  /// many more sweeps.
  /// *Effects*: on the device when this returns; a process that ends before leaves the old one valid. After a
  /// failure the object keeps to the old one, and begin_changes() makes sure that the file does.
  void commit(std::uint64_t more_sweeps, unsigned valid) {
    file_.get().sync_data();
    set_header_(detail::grid_state::filled, valid, header_.sweeps + more_sweeps);
  }
  /// Sweeps begin: they may overwrite the version that is not valid. *Effects*: gives back the memory that
  /// read_row() keeps. *Throws*: as check_valid(), and std::system_error; then nothing may be overwritten.
  void begin_changes() {
    check_valid();
    cache_ = {};
    cached_ = no_row;
    if (unsettled_) set_header_(detail::grid_state::filled, header_.version, header_.sweeps);
  }
  /// *Throws*: weft::error if the grid was not filled to its end.
  void check_valid() const {
    if (header_.state == static_cast<std::uint32_t>(detail::grid_state::filled)) return;
    throw error("weft: the values of '" + file_.get().path() + "' are not valid: fill() has not returned");
  }

 private:
  struct buffers {
    aligned_buffer values, fields;
  };
  static constexpr std::size_t no_row = SIZE_MAX;

  grid_file(const std::string& path, const grid_options& options, const grid_geometry& g,
            std::unique_ptr<io_queue> queue)
      : geometry_(g),
        boundary_(memory_, g.boundary().size),
        page_(memory_, file_alignment),
        file_(created_(path, options, g.file_bytes())),
        queue_(std::move(queue)) {
    std::copy_n(detail::grid_magic, sizeof header_.magic, header_.magic);
    header_.format = 1;
    header_.element = sizeof(T);
    header_.layout = static_cast<std::uint32_t>(geometry_.layout);
    header_.rows = geometry_.rows;
    header_.columns = geometry_.columns;
    header_.fields = Fields;
    header_.border = static_cast<std::uint32_t>(geometry_.border);
    header_.tile_rows = geometry_.tile_rows;
    header_.tile_columns = geometry_.tile_columns;
    or_remove_(path, [this] { detail::write_header(file_.get(), header_, page_.data()); });
  }
  static detail::direct_file created_(const std::string& path, const grid_options& options,
                                      std::uint64_t bytes) {
    io::file f = io::file::create(path, options.overwrite);
    return or_remove_(path, [&] {
      detail::direct_file made(std::move(f), options.direct);
      // Else a full device shows in the middle of sweeps, and in mapped memory as SIGBUS.
      static_cast<void>(made.get().allocate(0, bytes));  // what cannot be reserved is left as a hole
      made.get().resize(bytes);
      return made;
    });
  }
  /// Calls f; after a failure the new file is not left behind. (Never a device: its name would be lost.)
  template <class F>
  static auto or_remove_(const std::string& path, const F& f) {
    try {
      return f();
    } catch (...) {
      struct stat found;
      if (::lstat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode)) ::unlink(path.c_str());
      throw;
    }
  }
  /// The next header. Its page is the one that does not count now. If the write fails, nobody knows which of
  /// both counts from now on: the values of both are good, and stay so until another attempt at the same page
  /// has succeeded.
  void set_header_(detail::grid_state s, unsigned version, std::uint64_t sweeps) {
    grid_header next = header_;
    next.state = static_cast<std::uint32_t>(s);
    next.version = version;
    next.sweeps = sweeps;
    next.generation += 1;
    unsettled_ = true;
    detail::write_header(file_.get(), next, page_.data());
    unsettled_ = false;
    header_ = next;
    cached_ = no_row;
  }
  static grid_geometry checked_(const grid_options& o) {
    if (o.rows == 0 || o.columns == 0) throw error("weft: a grid file needs at least one row and one column");
    if (o.border == 0 || o.border > UINT32_MAX)
      throw error("weft: the boundary of a grid file is at least one row and column on each side");
    if (o.layout > layout::optimized) throw error("weft: unknown layout of a grid file");
    const bool whole = o.layout == layout::row_major || o.layout == layout::strips;
    const auto extent = [](std::size_t wanted, std::size_t standard, std::size_t all) {
      return std::min(wanted != 0 ? wanted : standard, all);
    };
    const grid_geometry g = {o.rows,
                             o.columns,
                             Fields,
                             sizeof(T),
                             o.layout,
                             extent(o.tile_rows, whole ? 16 : 256, o.rows),
                             whole ? o.columns : extent(o.tile_columns, 256, o.columns),
                             o.border};
    if (!detail::addressable(g)) throw error("weft: a grid file cannot hold so many rows and columns");
    return g;
  }
  void read_(const file_extent& e, std::byte* to) {
    const std::size_t got = file_.get().read_at(to, e.size, e.offset);
    if (got < e.size) io::fail(ENODATA, "read", file_.get().path(), e.offset + got);
  }
  template <class F>
  void fill_boundary_(const F& f) {
    T* to = elements<T>(boundary_);
    const std::size_t b = border();
    for (const std::size_t first : {std::size_t{0}, rows() + b})
      for (std::size_t r = first; r < first + b; ++r)
        for (std::size_t c = 0; c < columns() + 2 * b; ++c) *to++ = f(r, c, 0);
    for (const std::size_t first : {std::size_t{0}, columns() + b})
      for (std::size_t c = first; c < first + b; ++c)
        for (std::size_t r = b; r < rows() + b; ++r) *to++ = f(r, c, 0);
    file_.get().write_at(boundary_.data(), boundary_.size(), geometry_.boundary().offset);
  }
  template <class F>
  void fill_tile_(std::size_t number, const F& f, buffers& b) const {
    const tile_shape t = geometry_.tile(number);
    const std::size_t pitch = geometry_.pitch(t), field = geometry_.field_pitch(t), border = geometry_.border;
    for (std::size_t r = 0; r < t.rows; ++r)
      for (std::size_t c = 0; c < t.columns; ++c)
        elements<T>(b.values)[geometry_.place(t, r, c)] = f(t.row + r + border, t.column + c + border, 0);
    for (std::size_t i = 0; i < Fields; ++i)
      for (std::size_t r = 0; r < t.rows; ++r)
        for (std::size_t c = 0; c < t.columns; ++c)
          elements<T>(b.fields)[i * field + r * pitch + c] =
              f(t.row + r + border, t.column + c + border, static_cast<int>(i) + 1);
  }

  memory_budget memory_;
  grid_geometry geometry_{};
  grid_header header_{};    // as it surely stands in the file
  bool unsettled_ = false;  // the other page may count, or not
  aligned_buffer boundary_, page_, cache_;
  std::size_t cached_ = no_row;  // the row of tiles in cache_
  detail::direct_file file_;
  std::unique_ptr<io_queue> queue_;  // last: what is on its way ends before the file does
};

}  // namespace weft::inline WEFT_ABI::ooc
