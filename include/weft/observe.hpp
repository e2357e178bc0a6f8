// SPDX-License-Identifier: BSL-1.0
// A run that explains itself: the graph of its tasks, how far it could scale, and metrics for monitoring.
#pragma once

#include <weft/flow/steal_cost.hpp>
#include <weft/observe/graph_file.hpp>
#include <weft/observe/open_metrics.hpp>
#include <weft/observe/work_and_span.hpp>
