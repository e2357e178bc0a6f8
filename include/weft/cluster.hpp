// SPDX-License-Identifier: BSL-1.0
// Tasks that the processes of an MPI job execute together.
#pragma once

#include <weft/cluster/anywhere.hpp>
#include <weft/cluster/migratable.hpp>
#include <weft/cluster/processes.hpp>
