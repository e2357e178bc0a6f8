// expect: weft: this key has bytes or values without a meaning; give the hash table a hash of your own
#include <weft/rma.hpp>
struct padded {
  char a;
  int b;
  bool operator==(const padded&) const = default;
};
void f(const weft::mpi::communicator& world) {
  weft::rma::hash_table<padded, int> table(world, {.buckets_per_process = 64});
}
