// SPDX-License-Identifier: BSL-1.0
// What executes single transfers between memory and files, and tells when each has ended.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft::inline WEFT_ABI::ooc {

/// One read or write at a place of a file.
struct transfer {
  int descriptor;        ///< of the file
  bool write;            ///< memory to file; else file to memory
  char* memory;          ///< where the bytes are, or come to
  std::size_t size;      ///< how many bytes
  std::uint64_t offset;  ///< of the first one, in the file
  /// Called when the transfer has ended, with the number of bytes, which may be smaller than `size`, or a
  /// negative errno value.
  void (*ended)(transfer&, long result) noexcept;
  void* of;                  ///< for the one who set `ended`
  transfer* next = nullptr;  ///< for the engine
};

/// Executes transfers. Derived classes are the engines; io_queue keeps order, bounds and repetitions, so an
/// engine may do less than was asked, in any order.
/// *Thread safety*: any thread.
class io_engine {
 public:
  io_engine() = default;
  io_engine(const io_engine&) = delete;
  io_engine& operator=(const io_engine&) = delete;
  /// *Requires*: nothing is on its way.
  virtual ~io_engine() = default;
  /// Its name in reports.
  virtual const char* name() const noexcept = 0;
  /// Starts a transfer. Another thread calls `ended`, once.
  /// *Returns*: false if it takes no more at the moment; then nothing has happened.
  virtual bool start(transfer& t) noexcept = 0;
};

/// Makes the engine on io_uring for so many transfers at once; null where the kernel does not allow it. Set
/// before main() by every file that is compiled with liburing (detail/uring_engine.hpp), null if there is
/// none.
inline std::unique_ptr<io_engine> (*uring_factory)(unsigned in_flight) = nullptr;

}  // namespace weft::inline WEFT_ABI::ooc
