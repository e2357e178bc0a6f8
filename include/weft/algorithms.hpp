// SPDX-License-Identifier: BSL-1.0
// Algorithms over ranges with the results of the standard's serial ones, divide and conquer, and pipelines.
#pragma once

#include <weft/algorithms/copy.hpp>
#include <weft/algorithms/divide_and_conquer.hpp>
#include <weft/algorithms/find.hpp>
#include <weft/algorithms/for_each.hpp>
#include <weft/algorithms/merge.hpp>
#include <weft/algorithms/partition.hpp>
#include <weft/algorithms/pipeline.hpp>
#include <weft/algorithms/reduce.hpp>
#include <weft/algorithms/scan.hpp>
#include <weft/algorithms/sort.hpp>
