// SPDX-License-Identifier: BSL-1.0
// expect: weft: an exception that is to go to another process needs 'serialize', or a constructor that takes its
#include <weft/cluster/exceptions.hpp>

struct position {
  const char* where;
};

int main() { weft::remote::register_exception<position>(); }
