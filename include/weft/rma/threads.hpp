// SPDX-License-Identifier: BSL-1.0
// Windows, locks and hash tables of threads of one process, which need no MPI.
#pragma once

#include <weft/rma/detail/thread_memory.hpp>
#include <weft/rma/hash_table.hpp>
#include <weft/rma/locks.hpp>
#include <weft/rma/thread_group.hpp>
#include <weft/rma/window.hpp>

namespace weft::inline WEFT_ABI::rma {

/// A window in which each thread of a group has a part.
template <class T>
using thread_window = window<T, thread_group>;
/// A hash table in which each thread of a group has a part.
template <class Key, class Value, class Hash = hash_bytes<Key>>
using thread_hash_table = hash_table<Key, Value, Hash, thread_group>;

}  // namespace weft::inline WEFT_ABI::rma
