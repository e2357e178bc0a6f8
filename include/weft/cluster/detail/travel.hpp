// SPDX-License-Identifier: BSL-1.0
// What is known of a kind of task that can be executed in another process.
#pragma once

#include <weft/cluster/archive.hpp>
#include <weft/sched/outside_thief.hpp>

#include <memory>

namespace weft::inline WEFT_ABI {
namespace remote {

/// A task of another process: a closure with objects of its own, made from the values that were sent.
struct guest : sched::outside_task {
  virtual ~guest() = default;
  /// Adds what goes back. `well`: it has not thrown; otherwise what it has written until then.
  virtual void pack_results(writer& w, bool well) = 0;

  void* of = nullptr;  ///< for whoever is told its end
};

class repeatable;

}  // namespace remote
namespace sched {

/// How the tasks of one type travel.
struct travel {
  /// Whether this one may.
  bool (*may_go)(const closure& c) noexcept;
  /// Adds its callable, its arguments and the values that it reads, and leaves it as it is.
  void (*pack)(const closure& c, remote::writer& w);
  /// Makes the task of what was packed. *Throws*: weft::error, std::bad_alloc, what constructors throw.
  std::unique_ptr<remote::guest> (*unpack)(remote::reader& r);
  /// It has ended elsewhere, `well` or not: takes over what it has written, and destroys its arguments.
  /// *Throws*: the same; then lose() is still to be called.
  void (*take_back)(closure& c, remote::reader& r, bool well);
  /// It is unknown how it has ended: destroys its arguments.
  void (*lose)(closure& c) noexcept;
  /// Makes a copy of it that can be executed again and again (repeatable.hpp). Null: it has none. *Throws*:
  /// std::bad_alloc, what copying throws.
  std::unique_ptr<remote::repeatable> (*repeat)(const closure& c);
  /// It has ended well here, with all below it, and its contributions are still apart: adds what
  /// guest::pack_results would.
  void (*pack_written)(closure& c, remote::writer& w);
  /// Folds contributions that were made apart into their objects, and destroys the arguments. Null: tasks of
  /// this type have none. *Throws*: what the operations throw.
  void (*fold)(closure& c);
};

}  // namespace sched
}  // namespace weft::inline WEFT_ABI
