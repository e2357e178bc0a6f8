// expect: weft: windows of an MPI job need <weft/rma.hpp>, those of threads <weft/rma/threads.hpp>
#include <weft/rma/window.hpp>

weft::rma::window<int>* f(void* at) {
  return static_cast<weft::rma::window<int>*>(at)->size() != 0 ? nullptr : nullptr;
}
