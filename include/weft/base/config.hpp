// SPDX-License-Identifier: BSL-1.0
// Every macro of the library, each with its reason; no other header defines one.
#pragma once

/// The hot half of `fork` must melt into the caller; optimisers judge it too large by themselves.
#define WEFT_ALWAYS_INLINE [[gnu::always_inline]] inline

/// Keeps rare paths out of the caller's code, so that a fork site stays small.
#define WEFT_COLD [[gnu::noinline, gnu::cold]]

/// Out of line, but not cold: paths taken often that would bloat every fork site.
#define WEFT_NOINLINE [[gnu::noinline]]

/// On functions that a program which defines WEFT_COMPILED finds in the library weft::compiled, and every
/// other program in headers. `definitions.hpp` of a room includes their definitions where they belong.
#ifndef WEFT_COMPILED
#define WEFT_COMPILED 0
#elif WEFT_COMPILED + 0 == 0
#undef WEFT_COMPILED
#define WEFT_COMPILED 1
#endif
#if WEFT_COMPILED
#define WEFT_FUNCTION
#else
#define WEFT_FUNCTION inline
#endif
/// Whether this translation unit has the definitions: the one that makes weft::compiled defines it.
#ifndef WEFT_DEFINITIONS
#define WEFT_DEFINITIONS !WEFT_COMPILED
#endif

/// On state of which a process has one, in however many modules (program, shared libraries) weft's headers
/// were compiled: -fvisibility=hidden would give each module its own. `used` puts it into every module, so
/// that two modules share either all such state or none (context/README.md, "Modules").
#define WEFT_PER_PROCESS [[gnu::used, gnu::visibility("default")]]

/// On what each module has for itself, since it must end when the module is unloaded.
#define WEFT_PER_MODULE [[gnu::visibility("hidden")]]

/// On exceptions, which one module throws and another catches.
#define WEFT_CROSSES_MODULES [[gnu::visibility("default")]]

/// Thread Sanitizer neither models fences nor knows membarrier, so it selects the fenced entry of thieves.
#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif
#ifndef WEFT_TSAN
#define WEFT_TSAN 0
#endif

// WEFT_PLATFORM, for tests only: the header, as after #include, of another platform (base/platform.hpp).

/// Address Sanitizer must be told of stacks.
#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#endif
#ifndef WEFT_ASAN
#define WEFT_ASAN 0
#endif

/// 1: tasks run at once, each as a thread of its own in the eyes of Thread Sanitizer, ordered by declared
/// accesses alone (task/races.hpp).
#if WEFT_TSAN && defined(WEFT_TSAN_NO_SYNC)
#define WEFT_RACES 1
#else
#define WEFT_RACES 0
#endif

/// 1: owners use plain stores and thieves pay for a process-wide barrier; 0: both use ordered operations.
#ifndef WEFT_ASYMMETRIC
#if defined(__linux__) && !WEFT_TSAN && !defined(WEFT_PLATFORM)
#define WEFT_ASYMMETRIC 1
#else
#define WEFT_ASYMMETRIC 0
#endif
#endif

/// Checked builds detect violated rights at run time (docs/how-to/debug-a-task-program.md); default in
/// Debug.
#ifndef WEFT_CHECKED
#ifdef NDEBUG
#define WEFT_CHECKED 0
#else
#define WEFT_CHECKED 1
#endif
#endif

/// Counts tasks run inside `fork` on the fast path too; costs one increment per task, for tests only.
#ifndef WEFT_COUNT_INLINED
#define WEFT_COUNT_INLINED 0
#elif WEFT_COUNT_INLINED + 0 == 0
#undef WEFT_COUNT_INLINED
#define WEFT_COUNT_INLINED 1
#endif

/// A frame with so many closures that have not ended is promoted to a graph by the first thief that meets it
/// (measured: docs/development/decisions.md); small values are for tests.
#ifndef WEFT_LARGE_FRAME
#define WEFT_LARGE_FRAME 64
#endif

/// Tasks shorter than this are left to the worker that forked them (measured:
/// docs/development/decisions.md); large values are for tests.
#ifndef WEFT_TINY_TASK_NS
#define WEFT_TINY_TASK_NS 200
#endif
/// For how long at first; small values are for tests.
#ifndef WEFT_COOLDOWN_US
#define WEFT_COOLDOWN_US 50
#endif
/// How often a strand leaves a task to thieves at most, on average (task/exposure.hpp); small values are for
/// tests.
#ifndef WEFT_EXPOSURE_NS
#define WEFT_EXPOSURE_NS 10000
#endif
/// Tasks of a cluster that take less are not recorded in checkpoints; with 0, for tests, all are, whatever
/// that costs.
#ifndef WEFT_RECORDED_US
#define WEFT_RECORDED_US 150
#endif
/// How often a thief looks for the owner's answer before it pays for a barrier; small values are for tests.
#ifndef WEFT_ANSWER_LOOKS
#define WEFT_ANSWER_LOOKS 64
#endif

/// 1: tracers find probes in the program (base/probe.hpp). They change neither layouts nor names, so files of
/// a program may differ in this.
#ifndef WEFT_PROBES
#if defined(__ELF__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__)) && \
    !defined(WEFT_PLATFORM)
#define WEFT_PROBES 1
#else
#define WEFT_PROBES 0
#endif
#elif WEFT_PROBES + 0 == 0
#undef WEFT_PROBES
#define WEFT_PROBES 0
#endif
/// One probe: a nop, and a note that tells its place, name and arguments. It costs no memory of the process:
/// the note is read from the file. `arguments`: as in the note, "8@%0 8@%1", 8 bytes each; then the operands.
/// `inline`: or GCC takes the lines of the note for instructions when it thinks about inlining.
/// The note lies in the group of the function ("?"), and is dropped with it.
#if WEFT_PROBES
#define WEFT_PROBE(name, arguments, ...)                                      \
  asm inline volatile(                                                        \
      "990:\tnop\n"                                                           \
      "\t.pushsection .note.stapsdt, \"?\", \"note\"\n"                       \
      "\t.balign 4\n"                                                         \
      "\t.4byte 8, 992f - 991f, 3\n" /* lengths of owner and rest, version */ \
      "\t.asciz \"stapsdt\"\n"                                                \
      "991:\t.8byte 990b\n"                                                   \
      "\t.8byte _.stapsdt.base\n"                                             \
      "\t.8byte 0\n" /* no counter of tracers */                              \
      "\t.asciz \"weft\"\n"                                                   \
      "\t.asciz \"" name                                                      \
      "\"\n"                                                                  \
      "\t.asciz \"" arguments                                                 \
      "\"\n"                                                                  \
      "992:\t.balign 4\n"                                                     \
      "\t.popsection\n" WEFT_PROBE_BASE                                       \
      :                                                                       \
      : __VA_ARGS__)
#else
#define WEFT_PROBE(name, arguments, ...) static_cast<void>(0)
#endif
/// A byte that stands for where the program was linked to; one for all notes, whoever has made them.
#define WEFT_PROBE_BASE                                                         \
  "\t.ifndef _.stapsdt.base\n"                                                  \
  "\t.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
  "\t.weak _.stapsdt.base\n"                                                    \
  "\t.hidden _.stapsdt.base\n"                                                  \
  "_.stapsdt.base:\t.space 1\n"                                                 \
  "\t.size _.stapsdt.base, 1\n"                                                 \
  "\t.popsection\n"                                                             \
  "\t.endif\n"

/// The inline namespace of all that the library defines, but for its exceptions (base/error.hpp): the
/// version, and whatever else gives the same names other layouts or other code. So modules, and the files of
/// one program, that were compiled in different ways have types, functions and state of their own.
#define WEFT_ABI \
  WEFT_JOIN(v0_1_0, WEFT_ABI_CHECKED, WEFT_ABI_SANITIZED, WEFT_ABI_FENCED, WEFT_ABI_COUNTED, WEFT_ABI_TUNED)
/// The same as text.
#define WEFT_ABI_TEXT WEFT_TEXT(WEFT_ABI)

#define WEFT_JOIN(a, b, c, d, e, f) WEFT_JOIN_EXPANDED(a, b, c, d, e, f)
#define WEFT_JOIN_EXPANDED(a, b, c, d, e, f) a##b##c##d##e##f
#define WEFT_TEXT(a) WEFT_TEXT_EXPANDED(a)
#define WEFT_TEXT_EXPANDED(a) #a
#if WEFT_CHECKED
#define WEFT_ABI_CHECKED _checked
#else
#define WEFT_ABI_CHECKED
#endif
#if WEFT_RACES
#define WEFT_ABI_SANITIZED _races
#elif WEFT_TSAN
#define WEFT_ABI_SANITIZED _tsan
#elif WEFT_ASAN
#define WEFT_ABI_SANITIZED _asan
#else
#define WEFT_ABI_SANITIZED
#endif
#if WEFT_ASYMMETRIC
#define WEFT_ABI_FENCED
#else
#define WEFT_ABI_FENCED _fenced
#endif
#if WEFT_COUNT_INLINED
#define WEFT_ABI_COUNTED _counted
#else
#define WEFT_ABI_COUNTED
#endif
#if defined(WEFT_PLATFORM) || WEFT_LARGE_FRAME != 64 || WEFT_TINY_TASK_NS != 200 ||   \
    WEFT_COOLDOWN_US != 50 || WEFT_ANSWER_LOOKS != 64 || WEFT_EXPOSURE_NS != 10000 || \
    WEFT_RECORDED_US != 150
#define WEFT_ABI_TUNED _tuned
#else
#define WEFT_ABI_TUNED
#endif
