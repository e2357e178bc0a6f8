// SPDX-License-Identifier: BSL-1.0
// The cost model of out-of-core wavefronts: three buffers on several processors, and chained sweeps.
#pragma once

#include <weft/base/config.hpp>

#include <algorithm>
#include <cmath>

namespace weft::inline WEFT_ABI::ooc::model {

/// What a platform takes. Seconds, but for `speed`.
/// *Source*: Caron, Desprez, Suter 2004, equations 5 to 7.
struct machine {
  double io_latency;       ///< of a transfer to or from the disk
  double io_transfer;      ///< of an element, to or from the disk
  double receive_latency;  ///< of a message, at the receiver
  double send_latency;     ///< of a message, at the sender
  double transfer;         ///< of an element in a message
  double speed;            ///< operations in a second

  /// Equation 5: sending so many elements to a neighbour.
  double communication(double elements) const noexcept {
    return receive_latency + send_latency + elements * transfer;
  }
  /// Equation 6: reading or writing so many elements.
  double io(double elements) const noexcept { return io_latency + elements * io_transfer; }
  /// The time from one of many such transfers to the next one, if so many are always on their way: the
  /// latency of some passes while others are served.
  double io(double elements, double in_flight) const noexcept {
    return std::max(elements * io_transfer, io(elements) / in_flight);
  }
  /// How many transfers on their way hide the latency.
  double enough_in_flight(double elements) const noexcept {
    return 1 + io_latency / (elements * io_transfer);
  }
};

/// A wavefront over a matrix of `rows` x `columns` elements, of which each processor has rows / processors
/// rows, which it passes in blocks of `width` columns. The frontiers may be several rows or columns thick.
/// Equations 15 and 19 are total() written out for a square matrix, one array and frontiers of one row;
/// equation 3, solved for the width, is 4, and 1 and 2 are the same without three blocks.
/// *Requires*: blocks are computed faster than they are read or written.
/// *Source*: Caron, Desprez, Suter 2004, sections 2 to 4; docs/explanation/out-of-core.md for the
/// corrections.
struct wavefront {
  double rows;                ///< M
  double columns;             ///< N
  double processors = 1;      ///< P
  double sweeps = 1;          ///< K
  double operations = 5;      ///< for an element
  double top = 1;             ///< rows that a processor needs from the one below, before a sweep
  double bottom = 1;          ///< rows that a processor sends to the one below, with each block
  double right = 1;           ///< columns that a block keeps for the next one
  double arrays_read = 1;     ///< arrays of which each block is read, by a transfer for each
  double arrays_written = 1;  ///< arrays of which each block is written, by a transfer for each
  double sharing = 1;         ///< processors that share a disk: 1, each has its own; P, all have the same

  /// Rows of a block (MB).
  double block_rows() const noexcept { return rows / processors; }
  /// Equation 7: computing a block.
  double computation(const machine& m, double width) const noexcept {
    return operations * block_rows() * width / m.speed;
  }
  /// Reading a block once, or writing it, of one array; the others that share the disk do the same meanwhile.
  double block_io(const machine& m, double width) const noexcept {
    return sharing * m.io(block_rows() * width);
  }

  /// Equation 8: the first block and the top frontier are read, and the frontier is sent.
  double synchronisation(const machine& m, double width) const noexcept {
    return arrays_read * block_io(m, width) + frontier_(m);
  }
  /// Equation 9: until the last processor alternates reads and writes; it reads two blocks and writes one.
  double load(const machine& m, double width) const noexcept {
    return (processors - 1) * hand_over_(m, width) + filling_(m, width);
  }
  /// Equation 10: a block is read, and one written, for each block that is left.
  double steady_state(const machine& m, double width) const noexcept {
    return (columns / width - 3) * (arrays_read + arrays_written) * block_io(m, width);
  }
  /// Equation 11: the last two blocks are written.
  double flush(const machine& m, double width) const noexcept {
    return 2 * arrays_written * block_io(m, width);
  }
  /// Equation 13: from a sweep to the next one.
  double transition(const machine& m, double width) const noexcept {
    return synchronisation(m, width) + hand_over_(m, width) + filling_(m, width);
  }
  /// Equations 12 (one sweep) and 14, in general form: all sweeps, seconds.
  double total(const machine& m, double width) const noexcept {
    return sweeps * frontier_(m) + (processors + sweeps - 2) * hand_over_(m, width) +
           (arrays_read + arrays_written) * sweeps * (columns / width) * block_io(m, width);
  }
  /// Equations 16 (one sweep) and 20: the derivative of total() by the width.
  double slope(const machine& m, double width) const noexcept {
    return per_column_(m) - per_width_(m) / (width * width);
  }
  /// Equations 18 (one sweep) and 21: the second derivative; it is positive, so total() has one minimum.
  double curvature(const machine& m, double width) const noexcept {
    return 2 * per_width_(m) / (width * width * width);
  }
  /// The width of blocks with the smallest total, where slope() is 0: equation 17, in which the paper prints
  /// the transfer time of messages N times too large, and its form for several sweeps, which the paper does
  /// not give. Infinite for one sweep on one processor, where only memory limits it.
  double best_width(const machine& m) const noexcept { return std::sqrt(per_width_(m) / per_column_(m)); }
  /// Equation 17 as it is printed, for one sweep over a square matrix.
  double printed_best_width(const machine& m) const noexcept {
    return std::sqrt(2 * processors * m.speed * m.io_latency /
                     ((processors - 1) * (5 + processors * m.speed * m.transfer)));
  }
  /// Equation 4: the widest blocks of which three fit into memory for so many elements.
  double widest(double elements) const noexcept {
    return std::floor((elements - top * columns - right * block_rows()) /
                      (3 * block_rows() * arrays_read + bottom));
  }

 private:
  double frontier_(const machine& m) const noexcept {
    return m.io(top * columns) + m.communication(top * columns);
  }
  double hand_over_(const machine& m, double width) const noexcept {
    return m.io_latency + computation(m, width) + m.communication(bottom * width);
  }
  double filling_(const machine& m, double width) const noexcept {
    return (2 * arrays_read + arrays_written) * block_io(m, width);
  }
  /// What total() has times the width, and what it has divided by it.
  double per_column_(const machine& m) const noexcept {
    return (processors + sweeps - 2) * (operations * block_rows() / m.speed + bottom * m.transfer);
  }
  double per_width_(const machine& m) const noexcept {
    return (arrays_read + arrays_written) * sweeps * columns * sharing * m.io_latency;
  }
};

/// Sweeps chained in passes over the file, as the policy `chained` does them: a window of strips moves over
/// the grid, is read at its front and written at its end, and has seen all sweeps of the pass meanwhile.
/// All times in seconds.
/// *Source*: docs/explanation/out-of-core.md.
struct chained {
  double sweeps = 1;      ///< all
  double together = 1;    ///< of a pass
  double processors = 1;  ///< that compute
  double units = 1;       ///< parts of the grid that are read and written as a whole
  double transfers = 0;   ///< reading and writing everything once, without latencies, which pass meanwhile
  double first_read = 0;  ///< of the first unit: nothing can be computed before
  double last_write = 0;  ///< of the last unit: everything has been computed then
  double computing = 0;   ///< one sweep, on one processor
  double ending = 0;      ///< making the new values the valid ones

  /// How often the file is read and written.
  double passes() const noexcept { return std::ceil(sweeps / together); }
  /// Computing all sweeps of a pass.
  double computed() const noexcept { return together * computing / processors; }
  /// One pass.
  double pass() const noexcept {
    return std::max(transfers, computed()) + first_read + computed() / units + last_write + ending;
  }
  /// All sweeps.
  double total() const noexcept { return passes() * pass(); }
  /// From so many sweeps in a pass on, computing takes longer than the transfers; longer chains gain nothing.
  double enough_together() const noexcept { return transfers * processors / computing; }
};

}  // namespace weft::inline WEFT_ABI::ooc::model
