// expect: weft: a window holds trivially copyable elements
#include <weft/rma.hpp>

#include <string>
void f(const weft::mpi::communicator& world) { weft::rma::window<std::string> window(world, 1); }
