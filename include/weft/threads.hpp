// SPDX-License-Identifier: BSL-1.0
// Bodies with a flow of their own, and what bodies wait for without keeping their worker.
#pragma once

#include <weft/threads/barrier.hpp>
#include <weft/threads/blocking.hpp>
#include <weft/threads/channel.hpp>
#include <weft/threads/condition.hpp>
#include <weft/threads/condition_variable.hpp>
#include <weft/threads/latch.hpp>
#include <weft/threads/mutex.hpp>
#include <weft/threads/select.hpp>
#include <weft/threads/semaphore.hpp>
#include <weft/threads/shared_mutex.hpp>
#include <weft/threads/sleep.hpp>
#include <weft/threads/spawn.hpp>
