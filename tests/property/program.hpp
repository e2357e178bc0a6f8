// SPDX-License-Identifier: BSL-1.0
// Random data-flow programs as data: objects and a tree of tasks whose arguments are rights of every kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace property {

/// What a body may do with what it can name. `owned`: a shared object or array of its own; `lent`: memory
/// that it has borrowed for its tasks; `result`: memory that a task fills, to be read after a sync.
enum class grade : unsigned char { owned, lent, result, read, write, update, commute, reduce };

/// How a task takes one argument: as a right, as a plain reference, as a list of rights.
enum class kind : unsigned char {
  read,
  write,
  update,
  commute,
  reduce0,
  reduce1,
  reduce2,
  reduce3,
  plain_read,
  plain_write,
  plain_update,
  plain_commute,
  weak_read,
  weak_write,
  weak_update,
  weak_reduce0,
  weak_reduce1,
  list_read,
  list_write,
  list_update,
  list_commute,
  list_weak_read,
  list_weak_update,
  part_read,
  part_write,
  part_update,
  span_read,
  span_update,
  weak_part_read,
  weak_part_write,
  weak_part_update,
  list_part_read,
  list_part_write,
  list_part_update,
};

struct properties {
  const char* text;
  grade right;
  int operation = -1;
  bool weak = false, list = false, array = false, plain = false;
};

/// In the order of kind.
inline constexpr std::array<properties, 34> all_kinds{{
    {.text = "read", .right = grade::read},
    {.text = "write", .right = grade::write},
    {.text = "update", .right = grade::update},
    {.text = "commute", .right = grade::commute},
    {.text = "reduce0", .right = grade::reduce, .operation = 0},
    {.text = "reduce1", .right = grade::reduce, .operation = 1},
    {.text = "reduce2", .right = grade::reduce, .operation = 2},
    {.text = "reduce3", .right = grade::reduce, .operation = 3},
    {.text = "plain read", .right = grade::read, .plain = true},
    {.text = "plain write", .right = grade::write, .plain = true},
    {.text = "plain update", .right = grade::update, .plain = true},
    {.text = "plain commute", .right = grade::commute, .plain = true},
    {.text = "weak_read", .right = grade::read, .weak = true},
    {.text = "weak_write", .right = grade::write, .weak = true},
    {.text = "weak_update", .right = grade::update, .weak = true},
    {.text = "weak_reduce0", .right = grade::reduce, .operation = 0, .weak = true},
    {.text = "weak_reduce1", .right = grade::reduce, .operation = 1, .weak = true},
    {.text = "list of read", .right = grade::read, .list = true},
    {.text = "list of write", .right = grade::write, .list = true},
    {.text = "list of update", .right = grade::update, .list = true},
    {.text = "list of commute", .right = grade::commute, .list = true},
    {.text = "list of weak_read", .right = grade::read, .weak = true, .list = true},
    {.text = "list of weak_update", .right = grade::update, .weak = true, .list = true},
    {.text = "read[]", .right = grade::read, .array = true},
    {.text = "write[]", .right = grade::write, .array = true},
    {.text = "update[]", .right = grade::update, .array = true},
    {.text = "span read[]", .right = grade::read, .array = true, .plain = true},
    {.text = "span update[]", .right = grade::update, .array = true, .plain = true},
    {.text = "weak_read[]", .right = grade::read, .weak = true, .array = true},
    {.text = "weak_write[]", .right = grade::write, .weak = true, .array = true},
    {.text = "weak_update[]", .right = grade::update, .weak = true, .array = true},
    {.text = "list of read[]", .right = grade::read, .list = true, .array = true},
    {.text = "list of write[]", .right = grade::write, .list = true, .array = true},
    {.text = "list of update[]", .right = grade::update, .list = true, .array = true},
}};

constexpr const properties& of(kind k) { return all_kinds[static_cast<std::size_t>(k)]; }

/// The parameter lists that the runner can launch.
template <kind... K>
struct shape {
  static constexpr std::array<kind, sizeof...(K)> kinds{K...};
};
template <class... S>
struct shape_list {
  static constexpr std::size_t size = sizeof...(S);
};
namespace shapes {
using enum kind;
using all =
    shape_list<shape<>, shape<read>, shape<write>, shape<update>, shape<commute>, shape<reduce0>,
               shape<reduce1>, shape<reduce2>, shape<reduce3>, shape<plain_read>, shape<plain_update>,
               shape<plain_commute>, shape<reduce0, reduce0>, shape<reduce0, reduce1>, shape<reduce0, read>,
               shape<reduce1, update>, shape<read, read>, shape<read, write>, shape<write, update>,
               shape<update, update>, shape<write, write>, shape<read, read, write>,
               shape<read, read, update>, shape<read, write, update>, shape<read, read, write, update>,
               shape<plain_write>, shape<plain_read, plain_write>, shape<commute, commute>,
               shape<commute, read>, shape<update, commute>, shape<commute, reduce0>, shape<read, update>,
               shape<plain_read, reduce0>, shape<write, reduce1>,
               // lists
               shape<list_read>, shape<list_update>, shape<list_commute>, shape<list_read, update>,
               shape<list_read, list_write, list_update>, shape<reduce0, list_read>,
               shape<commute, list_read>, shape<list_commute, list_read, reduce1>, shape<list_write, read>,
               // parts of arrays
               shape<part_read>, shape<part_write>, shape<part_update>, shape<span_read>, shape<span_update>,
               shape<part_read, part_write>, shape<part_update, part_update>, shape<part_read, update>,
               shape<part_update, reduce0>, shape<list_part_read, update>, shape<list_part_update, list_read>,
               shape<list_part_read, list_part_write>, shape<commute, part_read>,
               // weak rights
               shape<weak_update>, shape<weak_read>, shape<weak_write>, shape<weak_reduce0>,
               shape<weak_reduce1>, shape<weak_update, weak_update>, shape<weak_update, weak_read>,
               shape<weak_update, read>, shape<weak_update, update>, shape<weak_update, commute>,
               shape<weak_update, reduce0>, shape<weak_reduce0, read>, shape<list_weak_update>,
               shape<list_weak_read, list_weak_update>, shape<weak_part_update>, shape<weak_part_read>,
               shape<weak_part_write>, shape<weak_part_update, weak_update>, shape<weak_part_update, read>>;
}  // namespace shapes

/// The kinds of each shape, for those who do not need the types.
const std::vector<std::vector<kind>>& shape_kinds();
/// *Returns*: the number of the shape with these kinds, -1 if there is none.
int shape_of(const std::vector<kind>& kinds);
/// Whether all of them are read, write and update of whole objects.
template <class Kinds>
constexpr bool classical(const Kinds& kinds) {
  for (const kind k : kinds)
    if (of(k).weak || of(k).list || of(k).array || of(k).operation >= 0 || of(k).right == grade::commute)
      return false;
  return true;
}

/// Whether the runner can launch a task of these rights with options. What it cannot launch need not be
/// compiled.
template <class Kinds>
constexpr bool may_have_options(const Kinds& kinds) {
  return std::size(kinds) <= 1 || !classical(kinds);
}

/// Whether the runner can launch a task of these rights that returns a value.
template <class Kinds>
constexpr bool may_return(const Kinds& kinds) {
  const std::size_t n = std::size(kinds);
  const auto first = std::begin(kinds);
  return n == 0 || (n == 1 && (first[0] == kind::read || first[0] == kind::update)) ||
         (n == 2 && first[0] == kind::read && first[1] == kind::update);
}

/// Whether the runner can launch a loop with these rights: those that let its parts run at the same time, and
/// one that does not. The compiler has to make a task of each.
template <class Kinds>
constexpr bool may_loop(const Kinds& kinds) {
  bool shares = true;
  for (const kind k : kinds)
    shares = shares && !of(k).weak && (of(k).right == grade::read || of(k).right == grade::reduce);
  return shares || (std::size(kinds) == 1 && *std::begin(kinds) == kind::update);
}

/// Whether such a loop can be a body with a steal function, which gives rights away and not values.
template <class Kinds>
constexpr bool may_share(const Kinds& kinds) {
  for (const kind k : kinds)
    if (k != kind::read && k != kind::reduce0 && k != kind::reduce1 && k != kind::reduce2) return false;
  return std::size(kinds) != 0 && std::size(kinds) <= 2;
}

/// What a task is given: a part of what its parent holds under the name `from`, under a new name.
struct target {
  int name;
  int from;
  int first = 0, count = 1;  // relative to what the parent holds; used for arrays
};

struct argument {
  kind how;
  std::vector<target> targets{};  // one, or for a list any number
};

enum class action : unsigned char {
  get,              ///< fold all elements into the accumulator
  set,              ///< new values for all elements
  mod,              ///< change all elements and fold them into the accumulator
  add,              ///< add to the value; commutes
  contribute,       ///< add to the right end by the right's operation
  make,             ///< an object of this task, empty if the constant is 0
  repeat,           ///< forks some tasks several times, as a recorded graph
  baton,            ///< spawn some bodies that take turns, and add what they leave to a counter
  count,            ///< add to a counter under its lock
  fork,             ///< create the child
  sync,             ///< wait for all children
  catching_sync,    ///< the same, with a handler for the exceptions of this suite
  sync_in_handler,  ///< the same, while an exception of the body's own is being handled
  fail,             ///< throw
  spin              ///< use up time, so that other workers get a chance
};

struct task;

struct step {
  explicit step(action a, int n = -1, std::uint64_t c = 0, int at = 0);

  action what;
  int name;
  std::uint64_t constant;
  int cell;                 // of what is made; number of a counter
  std::vector<task> child;  // one task if this is a fork, some if a repeat or a baton, else empty
};

/// What becomes of the accumulator with which a task ends.
enum class outcome : unsigned char {
  none,    ///< nothing
  object,  ///< the task returns it: a shared object of the parent
  memory   ///< the task, a lambda without rights, stores it into memory that the parent reads after a sync
};

struct task {
  int id = 0;
  int shape = 0;
  int times = 0;  // iterations of a loop, each of which ends with a sync; 0: no loop
  std::vector<argument> arguments{};
  outcome gives = outcome::none;
  int result = -1, result_cell = -1;  // what the parent calls what the task gives
  bool spawned = false;               // a body with a flow of its own, without arguments
  bool options = false;               // forked with name, priority and local
  bool local = false;
  int priority = 0;
  std::vector<step> steps{};
};

inline step::step(action a, int n, std::uint64_t c, int at) : what(a), name(n), constant(c), cell(at) {}

/// The name under which a task with options is forked.
inline const char* name_of(const task& t) {
  static constexpr const char* names[] = {"ada", "bob", "cleo", "dora", "emil", "fay", "gus", "hal"};
  return names[t.id % 8];
}

enum class home : unsigned char { valued, empty, borrowed, array };

struct object {
  home where;
  int cell, size;  // it is the cells [cell, cell + size)
  std::uint64_t initial;
};

/// How many counters a program has. Bodies add to them in any order.
inline constexpr std::size_t counters = 2;

struct program {
  std::vector<object> objects{};  // named 0, 1, 2...
  task root{};
  int names = 0, tasks = 0, cells = 0;
};

/// May a holder of `held` give a child `wanted`?
constexpr bool may_hand_on(grade held, int held_operation, const properties& wanted) {
  if (held == grade::owned || held == grade::lent || held == grade::update) return true;
  if (held == grade::commute) return false;
  return held == wanted.right && (held != grade::reduce || held_operation == wanted.operation);
}

/// One round of the algebra. It neither commutes nor associates, so any reordering changes the value.
constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ (v + 0x9E3779B97F4A7C15ull)) * 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 29);
}

/// The operations of contributions: associative, not commutative. Words are affine maps modulo 2^32; the
/// first composes them, the others do so in another order or in disguise.
constexpr std::uint64_t compose(std::uint64_t x, std::uint64_t y) {
  const auto xa = static_cast<std::uint32_t>(x >> 32), xb = static_cast<std::uint32_t>(x);
  const auto ya = static_cast<std::uint32_t>(y >> 32), yb = static_cast<std::uint32_t>(y);
  return std::uint64_t{ya * xa} << 32 | std::uint32_t{ya * xb + yb};
}
inline constexpr std::uint64_t disguise = 0x123456789ABCDEFull, state = 0xFEDCBA987654321ull;
constexpr std::uint64_t combine(int operation, std::uint64_t x, std::uint64_t y) {
  switch (operation) {
    case 0:
      return compose(x, y);
    case 1:
      return compose(y, x);
    case 2:
      return compose(x ^ disguise, y ^ disguise) ^ disguise;
    default:
      return compose(x ^ state, y ^ state) ^ state;
  }
}
/// What is contributed: a map that forgets nothing of the one before it, in any disguise.
constexpr std::uint64_t contributed(int operation, std::uint64_t word) {
  const std::uint64_t odd = std::uint64_t{1} << 32;
  const std::uint64_t mask = operation == 2 ? disguise : operation == 3 ? state : 0;
  return ((word ^ mask) | odd) ^ mask;
}

/// Weight of the tree of tasks: what the shrinker makes smaller.
std::size_t size(const program& p);
/// The program as pseudo code, one step a line.
std::string print(const program& p);

/// The program of this seed: always the same one, and legal.
program generate(std::uint64_t seed);
/// Drops what the rules forbid (a right that is not held, a touch while a child holds the object, a value
/// that nobody gave, a step that no run can reach) and adds the missing value where a task must give one.
/// Where a task throws, nobody waits: the wait might end by weft::cancelled.
void legalise(program& p);
/// Drops locks and batons, so that no body waits for another one except by a sync.
void drop_waits(task& t);
/// Makes spawned bodies ordinary tasks.
void spawn_nothing(task& t);
/// Whether the task or one below it throws.
bool throws(const task& t);

}  // namespace property
