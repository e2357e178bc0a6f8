// expect: weft: elements of a window have an alignment of at most 64 bytes
#include <weft/rma.hpp>

struct alignas(128) pages {
  int of_two_lines;
};
void f(const weft::mpi::communicator& world) { weft::rma::window<pages> window(world, 1); }
