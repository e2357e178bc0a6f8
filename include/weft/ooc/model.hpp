// SPDX-License-Identifier: BSL-1.0
// The cost model of out-of-core wavefronts with three buffers, on several processors that have a disk each.
#pragma once

#include <weft/base/config.hpp>

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
};

/// A wavefront over a matrix of `rows` x `columns` elements, of which each processor has rows / processors
/// rows, which it passes in blocks of `width` columns. The frontiers may be several rows or columns thick.
/// *Source*: Caron, Desprez, Suter 2004, sections 2 and 3; docs/explanation/out-of-core.md for the
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

  /// Rows of a block (MB).
  double block_rows() const noexcept { return rows / processors; }
  /// Equation 7: computing a block.
  double computation(const machine& m, double width) const noexcept {
    return operations * block_rows() * width / m.speed;
  }
  /// Reading a block once, or writing it, of one array.
  double block_io(const machine& m, double width) const noexcept { return m.io(block_rows() * width); }

  /// Equation 8: the first block and the top frontier are read, and the frontier is sent.
  double synchronisation(const machine& m, double width) const noexcept {
    return block_io(m, width) + frontier_(m);
  }
  /// Equation 9: until the last processor alternates reads and writes.
  double load(const machine& m, double width) const noexcept {
    return (processors - 1) * hand_over_(m, width) + 3 * block_io(m, width);
  }
  /// Equation 10: a read and a write for each block that is left.
  double steady_state(const machine& m, double width) const noexcept {
    return (columns / width - 3) * 2 * block_io(m, width);
  }
  /// Equation 11: the last two blocks are written.
  double flush(const machine& m, double width) const noexcept { return 2 * block_io(m, width); }
  /// Equation 13: from a sweep to the next one.
  double transition(const machine& m, double width) const noexcept {
    return frontier_(m) + block_io(m, width) + hand_over_(m, width) + 3 * block_io(m, width);
  }
  /// Equations 12 (one sweep) and 14, in general form: all sweeps, seconds.
  double total(const machine& m, double width) const noexcept {
    return sweeps * frontier_(m) + (processors + sweeps - 2) * hand_over_(m, width) +
           (arrays_read + arrays_written) * sweeps * (columns / width) * block_io(m, width);
  }
  /// The width of blocks with the smallest total: equation 17, in which the paper prints the transfer time of
  /// messages N times too large, and its form for several sweeps, which the paper does not give. Infinite for
  /// one sweep on one processor, where only memory limits it.
  double best_width(const machine& m) const noexcept {
    return std::sqrt(
        (arrays_read + arrays_written) * sweeps * columns * m.io_latency /
        ((processors + sweeps - 2) * (operations * block_rows() / m.speed + bottom * m.transfer)));
  }
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
};

}  // namespace weft::inline WEFT_ABI::ooc::model
