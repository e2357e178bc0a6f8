// SPDX-License-Identifier: BSL-1.0
// Windows and hash tables of weft on simulated machines: a group of simulated processes, and their memory.
#pragma once

#include "simulated_words.hpp"

#include <weft/rma/hash_table.hpp>

#include <mpi.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

/// The part of a process in a simulated group. All processes share one address space.
class simulated_group {
 public:
  simulated_group(world& w, int rank, int size) : world_(&w), rank_(rank), size_(size) {}
  int rank() const { return rank_; }
  int size() const { return size_; }
  void barrier() const { MPI_Barrier(MPI_COMM_WORLD); }
  template <class T>
  std::vector<T> gather(const T& value) const {
    world_->values[static_cast<std::size_t>(rank_)] = &value;
    barrier();
    std::vector<T> all;
    for (const void* v : world_->values) all.push_back(*static_cast<const T*>(v));
    barrier();
    return all;
  }
  template <class T>
  T broadcast(const T& value) const {
    return gather(value)[0];
  }
  template <class T>
  T sum(T value) const {
    const std::vector<T> all = gather(value);
    return std::accumulate(all.begin(), all.end(), T{});
  }
  template <class T>
  T max(T value) const {
    return std::ranges::max(gather(value));
  }
  void abandon() const { fail("a process leaves a window by an exception"); }
  void end_job(const std::string& why) const { fail(why.c_str()); }
  world& all() const { return *world_; }

 private:
  world* world_;
  int rank_, size_;
};

/// Bytes of simulated processes. An operation costs its time, and then happens at once.
class simulated_memory final : public weft::rma::detail::remote_memory {
  using number_type = weft::rma::detail::number_type;
  using combine = weft::rma::combine;

 public:
  simulated_memory(const simulated_group& group, std::vector<std::byte*> parts)
      : words_(group.all(), group.rank(), false), parts_(std::move(parts)) {}
  void start_get(process p, std::size_t offset, void* to, std::size_t bytes) override {
    words_.put(p, static_cast<int>(bytes));  // takes as long
    std::memcpy(to, at_(p, offset), bytes);
  }
  void start_put(process p, std::size_t offset, const void* from, std::size_t bytes) override {
    words_.put(p, static_cast<int>(bytes));
    std::memcpy(at_(p, offset), from, bytes);
  }
  void start_accumulate(process p, std::size_t offset, const void* from, std::size_t count, number_type type,
                        combine how) override {
    with_number(type, [&]<class T>(T) {
      for (std::size_t i = 0; i < count; ++i)
        change_(p, offset + i * sizeof(T), how, static_cast<const T*>(from)[i]);
    });
  }
  void finish(process) override {}
  std::uint64_t load(process p, std::size_t offset, number_type type) override {
    words_.access(p);
    return with_number(type, [&]<class T>(T) { return static_cast<std::uint64_t>(element_<T>(p, offset)); });
  }
  std::uint64_t fetch(process p, std::size_t offset, number_type type, combine how,
                      std::uint64_t v) override {
    return with_number(type, [&]<class T>(T) {
      return static_cast<std::uint64_t>(change_(p, offset, how, static_cast<T>(v)));
    });
  }
  std::uint64_t compare_exchange(process p, std::size_t offset, number_type type, std::uint64_t expected,
                                 std::uint64_t wanted) override {
    return with_number(type, [&]<class T>(T) {
      return words_.atomic(p, [&] {
        T& element = element_<T>(p, offset);
        const T was = element;
        if (was == static_cast<T>(expected)) element = static_cast<T>(wanted);
        return static_cast<std::uint64_t>(was);
      });
    });
  }

 private:
  std::byte* at_(process p, std::size_t offset) const { return parts_[static_cast<std::size_t>(p)] + offset; }
  template <class T>
  T& element_(process p, std::size_t offset) const {
    return *reinterpret_cast<T*>(at_(p, offset));
  }
  template <class T>
  T change_(process p, std::size_t offset, combine how, T v) {
    return words_.atomic(p, [&] {
      T& element = element_<T>(p, offset);
      return std::exchange(element, weft::rma::combined(how, element, v));
    });
  }
  simulated_words words_;
  std::vector<std::byte*> parts_;
};

/// The memory of a window of simulated processes: nobody has an address of it.
class simulated_window_memory final : public weft::rma::detail::window_memory<simulated_group> {
 public:
  simulated_window_memory(const simulated_group& group, std::size_t size, std::size_t bytes,
                          const weft::rma::window_options& options)
      : window_memory(simulated_group(group), size, bytes, options) {
    if (options_.lock == weft::rma::lock_kind::mpi) fail("there is no MPI_Win_lock");
    if (options_.group == 0) options_.group = group_.all().scc ? 12 : 16;
    set_sizes_(size, bytes);
    mine_.resize(size_ / sizeof(std::uint64_t) + 1);
    const auto parts = group_.gather(reinterpret_cast<std::byte*>(mine_.data()));
    own_ = parts[static_cast<std::size_t>(group_.rank())] + before_;
    remote_ = std::make_unique<simulated_memory>(group_, parts);
    make_locks_(
        [&](std::size_t first) {
          return weft::rma::detail::memory_words(*remote_, group_.rank(), static_cast<std::uint32_t>(first));
        },
        [] { return std::unique_ptr<weft::rma::detail::lock_of_targets>(); });
    group_.barrier();
  }
  ~simulated_window_memory() { close_(); }

 private:
  std::vector<std::uint64_t> mine_;
};

template <>
struct weft::rma::detail::memory_of<simulated_group> {
  using type = simulated_window_memory;
};
