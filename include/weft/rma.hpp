// SPDX-License-Identifier: BSL-1.0
// Memory of other processes, and locks on it; programs link weft::mpi.
#pragma once

#include <weft/mpi/environment.hpp>
#include <weft/rma/processes.hpp>
