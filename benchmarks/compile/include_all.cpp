// SPDX-License-Identifier: BSL-1.0
// The shortest program with weft in it: what including everything costs the compiler.
#include <weft/weft.hpp>

int main() {}
