// SPDX-License-Identifier: BSL-1.0
// The other translation unit of getter.cpp: both must mean the same variable, in one module or in two.
#include "context/outside.hpp"

extern "C" {
void* getter_once();
bool getter_around();
}

namespace {
int first_object;
int second_object;
}  // namespace

[[gnu::noinline, gnu::visibility("default")]] void opaque() { weft::context::set_current(&second_object); }

int main() {
  if (getter_once() != &weft::context::outside) return 1;
  weft::context::set_current(&first_object);
  if (getter_once() != &first_object) return 2;
  if (getter_around()) return 3;  // opaque() changed it
  return getter_once() == &second_object ? 0 : 4;
}
