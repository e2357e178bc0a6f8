// SPDX-License-Identifier: BSL-1.0
// The one source file of weft::compiled: what programs that define WEFT_COMPILED do not compile themselves.
#include <weft/weft.hpp>

#if !WEFT_COMPILED || !WEFT_DEFINITIONS
#error "compile this file with -DWEFT_COMPILED=1 -DWEFT_DEFINITIONS=1"
#endif
