// SPDX-License-Identifier: BSL-1.0
// Windows, locks and hash tables of the processes of an MPI job.
#pragma once

#include <weft/rma/detail/job_memory.hpp>
#include <weft/rma/hash_table.hpp>
#include <weft/rma/hints.hpp>
#include <weft/rma/locks.hpp>
#include <weft/rma/window.hpp>
