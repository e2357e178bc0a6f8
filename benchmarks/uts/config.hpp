// SPDX-License-Identifier: BSL-1.0
// Unbalanced tree search: the trees T1 and T3 of the UTS benchmark, grown from a splittable SHA-1 generator.
#pragma once

#include "rival.hpp"
#include "sha1.hpp"

#include <math.h>

namespace weft_bench {

static const char* const kernel_name = "uts";
static const char* const task_name = "node";
static const char* const reference_name = "serial";

enum tree { t1, t3 };

struct problem {
  const char* name;
  tree which;
  long nodes;  ///< the published count
  int repetitions;
};

static const problem problems[] = {
    {"T1", t1, 4130071, 5},
    {"T3", t3, 4112897, 5},
};

/// A node is what the generator says of it: the children's states follow from their parent's.
struct node {
  digest state;
  int height;
};

/// T1: geometric, expected branching b_0 = 4 down to depth 10. T3: binomial, 2000 children of the root, then
/// 8 with probability 0.124875 and none otherwise.
static const int t1_depth = 10;
static const double t1_branching = 4.0;
static const int t3_root_children = 2000;
static const int t3_children = 8;
static const double t3_probability = 0.124875;

/// Most children of a node; the root of T3 has its own number.
static const int most_children = 100;

/// Hash of a zero-padded state that holds the seed.
inline node root_of(tree which) {
  const unsigned seeded[5] = {0, 0, 0, 0, which == t1 ? 19u : 42u};
  const node n = {sha1(seeded), 0};
  return n;
}

/// Hash of the parent's state and the child's number.
inline node child_of(const node& parent, unsigned number) {
  const unsigned* s = parent.state.word;
  const unsigned extended[6] = {s[0], s[1], s[2], s[3], s[4], number};
  const node n = {sha1(extended), parent.height + 1};
  return n;
}

/// Uniform in [0, 1): 31 bits of the state.
inline double uniform_of(const node& n) { return double(n.state.word[4] & 0x7fffffffu) / 2147483648.0; }

inline int children_of(tree which, const node& n) {
  if (which == t3) {
    if (n.height == 0) return t3_root_children;
    return uniform_of(n) < t3_probability ? t3_children : 0;
  }
  const double branching = n.height < t1_depth ? t1_branching : 0.0;
  if (branching == 0.0) return 0;
  const double p = 1.0 / (1.0 + branching);
  const int drawn = int(floor(log(1.0 - uniform_of(n)) / log(1.0 - p)));
  return drawn < most_children ? drawn : most_children;
}

/// Counts of a subtree, all added with one addition: nodes in the lower bits, leaves above.
static const long one_node = 1;
static const long one_leaf = 1L << 32;

inline long nodes_of(long counts) { return counts & (one_leaf - 1); }

inline outcome count_outcome(long counts, double seconds) {
  return plain_outcome(counts, nodes_of(counts), seconds);
}

}  // namespace weft_bench
