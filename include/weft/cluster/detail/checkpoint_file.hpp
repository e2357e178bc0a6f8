// SPDX-License-Identifier: BSL-1.0
// Files of checkpoints: whole from the moment when they have their names.
#pragma once

#include <weft/base/error.hpp>
#include <weft/cluster/transport.hpp>
#include <weft/io/directory.hpp>

#include <string>

namespace weft::inline WEFT_ABI::remote {

/// Makes a file that `fill(io::file&)` writes. It gets its name when its content is on the device, so after a
/// kill it is whole or not there; on return its name is on the device, too. *Throws*: std::system_error; then
/// nothing new has that name.
template <class Fill>
void publish_file(const io::directory& in, const std::string& name, bool replace, const Fill& fill) {
  io::unnamed_file fresh(in, name, 0666);
  fill(fresh.content());
  fresh.content().sync_data();
  fresh.publish(name, replace).close();
  in.sync();
}

/// All of a file. *Throws*: std::system_error, std::bad_alloc.
inline bytes read_file(const io::file& f) {
  bytes all(f.size());
  all.resize(f.read_at(all.data(), all.size(), 0));
  return all;
}

/// A file of a checkpoint is not as it was written.
[[noreturn]] WEFT_COLD inline void refuse_damaged_file(const std::string& path) {
  throw error("weft: '" + path + "' is damaged: its size or its checksum is wrong");
}

}  // namespace weft::inline WEFT_ABI::remote
