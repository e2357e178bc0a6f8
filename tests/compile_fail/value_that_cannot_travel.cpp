// SPDX-License-Identifier: BSL-1.0
// expect: weft: values of this type cannot go to another process; give it a member
#include <weft/cluster/archive.hpp>

#include <memory>

int main() {
  weft::remote::writer to;
  to(std::unique_ptr<int>());
}
