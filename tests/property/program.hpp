// SPDX-License-Identifier: BSL-1.0
// Random data-flow programs as data: objects and a tree of tasks with declared accesses; it can be printed
// and measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace property {

enum class mode : unsigned char { read, write, update };

/// How a task's body is written.
enum class flavour : unsigned char {
  rights,  ///< formals are weft::read<V>, weft::write<V>, weft::update<V>; may hand them on
  plain,   ///< formals are const V& and V&; hands nothing on
  result,  ///< as rights, and returns a value that becomes a shared object of the parent
  slot     ///< no access: stores its result into plain memory that the parent reads after sync
};

enum class action : unsigned char {
  make,             ///< a shared object of this task, empty if the constant is 0
  get,              ///< fold an object's value into the accumulator
  set,              ///< give an object a new value
  mod,              ///< change an object's value and fold it into the accumulator
  fork,             ///< create the child
  sync,             ///< wait for all children
  catching_sync,    ///< the same, with a handler for the exceptions of this suite
  sync_in_handler,  ///< the same, while an exception of the body's own is being handled
  fail,             ///< throw
  spin              ///< use up time, so that other workers get a chance
};

struct access {
  mode how;
  int object;
};

struct task;

struct step {
  explicit step(action a, int o = -1, std::uint64_t c = 0);

  action what;
  int object;
  std::uint64_t constant;
  std::vector<task> child;  // one task if this is a fork, else empty
};

/// Names are unique in a whole program, so a task sees an object under the name its creator gave it.
struct task {
  int id = 0;
  flavour kind = flavour::rights;
  std::vector<access> accesses{};  // sorted by mode; an object appears once
  int result = -1;                 // the object that a result or slot task makes in its parent
  bool options = false;            // forked with name, priority and local
  std::vector<step> steps{};
};

inline step::step(action a, int o, std::uint64_t c) : what(a), object(o), constant(c) {}

enum class home : unsigned char { valued, empty, borrowed };

struct object {
  home where;
  std::uint64_t initial;
};

struct program {
  std::vector<object> objects{};  // those the whole program sees; they are named 0, 1, 2...
  task root{};
  int names = 0;  // object names in use, of whole program and tasks together
  int tasks = 0;  // task ids in use
};

/// One round of the algebra. It neither commutes nor associates, so any reordering changes the value.
constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ (v + 0x9E3779B97F4A7C15ull)) * 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 29);
}

/// Options are exercised on the task shapes with at most one access.
inline bool has_options(const task& t) {
  return t.options && t.accesses.size() <= 1 && t.kind == flavour::rights;
}

/// The name under which a task with options is forked.
inline const char* name_of(const task& t) {
  static constexpr const char* names[] = {"ada", "bob", "cleo", "dora", "emil", "fay", "gus", "hal"};
  return names[t.id % 8];
}

/// Weight of the tree of tasks: what the shrinker makes smaller.
std::size_t size(const program& p);

/// The program as pseudo code, one step a line.
std::string print(const program& p);

}  // namespace property
