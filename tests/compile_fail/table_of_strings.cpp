// expect: weft: keys and values of a hash table are trivially copyable
#include <weft/rma.hpp>

#include <string>
void f(const weft::mpi::communicator& world) {
  weft::rma::hash_table<int, std::string> table(world, {.buckets_per_process = 64});
}
