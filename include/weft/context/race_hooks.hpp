// SPDX-License-Identifier: BSL-1.0
// What Thread Sanitizer is told where races between tasks are looked for; nothing in other builds.
#pragma once

#include <weft/base/config.hpp>

#include <cstddef>

#if !WEFT_RACES

namespace weft::inline WEFT_ABI::context::races {

/// See below.
inline void hide_accesses() noexcept {}
inline void show_accesses() noexcept {}

}  // namespace weft::inline WEFT_ABI::context::races

#else

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void __tsan_java_init(unsigned long begin, unsigned long size);
void __tsan_java_alloc(unsigned long address, unsigned long size);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}

namespace weft::inline WEFT_ABI::context::races {

/// Until show(), which may be nested, the sanitizer sees nothing of what this context does.
inline void hide() noexcept {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}
inline void show() noexcept {
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
/// The same, but for synchronisation: for contexts that execute nothing but the library, and pass on to tasks
/// what others have released.
inline void hide_accesses() noexcept {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
inline void show_accesses() noexcept {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
/// Orders what was released before what follows. *Requires*: not hidden.
inline void acquire(void* token) noexcept { __tsan_acquire(token); }
inline void release(void* token) noexcept { __tsan_release(token); }
/// The memory is a new object's: what was done to the one before it does not count. The sanitizer has a
/// function for it among those meant for Java; that heap, which reports would be looked up in, is empty here.
inline void forget(void* memory, std::size_t size) noexcept {
  static const int registered = (__tsan_java_init(8, 8), 0);
  static_cast<void>(registered);
  __tsan_java_alloc(reinterpret_cast<unsigned long>(memory), (size + 7) & ~std::size_t{7});
}

}  // namespace weft::inline WEFT_ABI::context::races

#endif
