// SPDX-License-Identifier: BSL-1.0
// Memory of other processes, reached by messages to a thread there.
#pragma once

#include <weft/mpi/communicator.hpp>
#include <weft/rma/detail/acquire.hpp>
#include <weft/rma/detail/remote_memory.hpp>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::inline WEFT_ABI::rma::detail {

/// Each process has a thread that executes what messages ask for, so a target need not call MPI. The thread
/// sleeps between messages, for 100 microseconds at most. Constructor and destructor are collective.
/// *Throws*: weft::error if MPI was not started for several threads, or a process cannot start its thread.
class message_memory final : public remote_memory {
 public:
  /// `own`: the memory of this process.
  message_memory(const mpi::communicator& group, std::byte* own) : group_(group.handle()), own_(own) {
    int threads = 0;
    mpi::detail::check(MPI_Query_thread(&threads), "MPI_Query_thread");
    if (group_.min(threads) < MPI_THREAD_MULTIPLE)
      throw error(
          "weft: the backend messages needs MPI_THREAD_MULTIPLE, which this MPI has not been started with");
    std::exception_ptr failure;
    try {
      server_ = std::thread([this] { serve_(); });
    } catch (...) {
      failure = std::current_exception();
    }
    if (group_.max<int>(failure != nullptr) == 0) return;
    stop_.store(true, std::memory_order_relaxed);  // only ends the thread, which is joined
    if (server_.joinable()) server_.join();
    if (failure != nullptr) std::rethrow_exception(failure);
    throw error("weft: another process cannot start the thread that serves its memory");
  }
  ~message_memory() override {
    // Also what a thread has begun and not finished: the buffers are its own, and live until then.
    for (patience between; !all_done_(flying_); between.wait()) {
    }
    // No process asks for anything after this, and all answers have been received.
    MPI_Barrier(group_.handle());
    stop_.store(true, std::memory_order_relaxed);
    server_.join();
  }

  void start_get(process target, std::size_t offset, void* to, std::size_t bytes) override {
    if (target == group_.rank()) return copy_(to, own_ + offset, bytes);
    pieces_(bytes, [&](std::size_t at, std::size_t n) {
      ask_(target, {.what = job::get, .offset = offset + at, .count = n}, nullptr, 0,
           static_cast<char*>(to) + at, n);
    });
  }
  void start_put(process target, std::size_t offset, const void* from, std::size_t bytes) override {
    if (target == group_.rank()) return copy_(own_ + offset, from, bytes);
    pieces_(bytes, [&](std::size_t at, std::size_t n) {
      ask_(target, {.what = job::put, .offset = offset + at, .count = n}, static_cast<const char*>(from) + at,
           n, nullptr, 0);
    });
  }
  void start_accumulate(process target, std::size_t offset, const void* from, std::size_t count,
                        number_type type, combine how) override {
    const std::size_t size = with_number(type, []<class T>(T) { return sizeof(T); });
    if (target == group_.rank()) return accumulate_(own_ + offset, from, count, type, how);
    pieces_(count * size, [&](std::size_t at, std::size_t n) {
      ask_(target,
           {.what = job::accumulate, .type = type, .how = how, .offset = offset + at, .count = n / size},
           static_cast<const char*>(from) + at, n, nullptr, 0);
    });
  }
  void finish(process target) override {
    std::list<flight> mine;
    {
      const std::lock_guard hold(mutex_);
      for (auto f = flying_.begin(); f != flying_.end();) {
        const auto now = f++;
        if (now->target == target && now->owner == std::this_thread::get_id())
          mine.splice(mine.end(), flying_, now);
      }
    }
    for (patience between; !all_done_(mine); between.wait()) {
    }
  }
  std::uint64_t load(process target, std::size_t offset, number_type type) override {
    return answer_(target, {.what = job::load, .type = type, .offset = offset});
  }
  std::uint64_t fetch(process target, std::size_t offset, number_type type, combine how,
                      std::uint64_t value) override {
    return answer_(target, {.what = job::fetch, .type = type, .how = how, .offset = offset, .value = value});
  }
  std::uint64_t compare_exchange(process target, std::size_t offset, number_type type, std::uint64_t expected,
                                 std::uint64_t wanted) override {
    return answer_(target, {.what = job::compare_exchange,
                            .type = type,
                            .offset = offset,
                            .value = wanted,
                            .expected = expected});
  }

 private:
  enum class job : std::uint8_t { get, put, accumulate, load, fetch, compare_exchange };
  /// A message begins with it; bytes may follow.
  struct request {
    job what;
    number_type type = number_type::u64;
    combine how = combine::replace;
    int reply = 0;  // the tag of the answer
    std::uint64_t offset = 0, count = 0, value = 0, expected = 0;
  };
  /// A request whose answer is not there yet.
  struct flight {
    process target = -1;
    std::thread::id owner = std::this_thread::get_id();
    std::vector<char> message;
    std::uint64_t nothing = 0;
    MPI_Request sent = MPI_REQUEST_NULL, answered = MPI_REQUEST_NULL;
  };
  static constexpr int for_server = 0, tags = 30000;
  static constexpr std::size_t most = std::size_t{1} << 26;  // bytes of a message

  static void copy_(void* to, const void* from, std::size_t bytes) noexcept {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  template <class F>
  static void pieces_(std::size_t all, F&& f) {
    for (std::size_t at = 0; at < all; at += most) f(at, std::min(most, all - at));
  }

  void ask_(process target, request r, const char* payload, std::size_t bytes, void* answer,
            std::size_t answer_bytes) {
    std::list<flight> made(1);
    const std::lock_guard hold(mutex_);
    start_(made.front(), target, r, payload, bytes, answer, answer_bytes);
    flying_.splice(flying_.end(), made);
  }
  /// *Requires*: the mutex is locked, so that of two requests with one tag the older one gets its answer
  /// first.
  void start_(flight& f, process target, request r, const char* payload, std::size_t bytes, void* answer,
              std::size_t answer_bytes) {
    f.target = target;
    next_tag_ = next_tag_ % tags + 1;
    r.reply = next_tag_;
    f.message.resize(sizeof r + bytes);
    std::memcpy(f.message.data(), &r, sizeof r);
    copy_(f.message.data() + sizeof r, payload, bytes);
    mpi::detail::check(MPI_Irecv(answer != nullptr ? answer : &f.nothing, static_cast<int>(answer_bytes),
                                 MPI_BYTE, target, r.reply, group_.handle(), &f.answered),
                       "MPI_Irecv");
    mpi::detail::check(MPI_Isend(f.message.data(), static_cast<int>(f.message.size()), MPI_BYTE, target,
                                 for_server, group_.handle(), &f.sent),
                       "MPI_Isend");
  }
  static bool done_(flight& f) {
    int sent = 0, answered = 0;
    mpi::detail::check(MPI_Test(&f.sent, &sent, MPI_STATUS_IGNORE), "MPI_Test");
    mpi::detail::check(MPI_Test(&f.answered, &answered, MPI_STATUS_IGNORE), "MPI_Test");
    return sent != 0 && answered != 0;
  }
  /// Removes those that are done. *Returns*: whether all are. *Requires*: no other thread uses the list.
  static bool all_done_(std::list<flight>& of) {
    std::erase_if(of, [](flight& f) { return done_(f); });
    return of.empty();
  }
  /// The answer of 8 bytes to a request.
  std::uint64_t answer_(process target, const request& r) {
    if (target == group_.rank()) return execute_(r);
    std::uint64_t answer = 0;
    flight f;
    {
      const std::lock_guard hold(mutex_);
      start_(f, target, r, nullptr, 0, &answer, sizeof answer);
    }
    for (patience between; !done_(f); between.wait()) {
    }
    return answer;
  }

  static void accumulate_(std::byte* at, const void* from, std::size_t count, number_type type, combine how) {
    with_number(type, [&]<class T>(T) {
      for (std::size_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, static_cast<const char*>(from) + i * sizeof value, sizeof value);
        combine_atomically(reinterpret_cast<T*>(at)[i], how, value);
      }
    });
  }
  /// One element.
  std::uint64_t execute_(const request& r) const {
    return with_number(r.type, [&]<class T>(T) {
      T& at = *reinterpret_cast<T*>(own_ + r.offset);
      T value, expected;
      std::memcpy(&value, &r.value, sizeof value);
      std::memcpy(&expected, &r.expected, sizeof expected);
      if (r.what == job::load)
        expected = std::atomic_ref<T>(at).load();
      else if (r.what == job::fetch)
        expected = combine_atomically(at, r.how, value);
      else
        std::atomic_ref<T>(at).compare_exchange_strong(expected, value);
      std::uint64_t was = 0;
      std::memcpy(&was, &expected, sizeof expected);
      return was;
    });
  }

  /// Asks the scheduler for a short slice: a thread that wakes up with one need not wait until a thread that
  /// spins in MPI has used up its own. Kernels before Linux 6.12 do not know that, and change nothing.
  /// Nor does this, where the program has chosen another policy for its threads.
  static void ask_for_short_slices_() noexcept {
    if (::sched_getscheduler(0) != SCHED_OTHER) return;
    struct {
      std::uint32_t size = 48, policy = 0;
      std::uint64_t flags = 0;
      std::int32_t nice = ::getpriority(PRIO_PROCESS, 0);
      std::uint32_t priority = 0;
      std::uint64_t slice = 100'000, deadline = 0, period = 0;  // nanoseconds
    } wanted;
    ::syscall(SYS_sched_setattr, 0, &wanted, 0);
  }
  void serve_() noexcept try {
    ask_for_short_slices_();
    std::vector<char> message;
    unsigned idle = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
      MPI_Message matched = MPI_MESSAGE_NULL;
      MPI_Status status;
      int is_there = 0, bytes = 0;
      mpi::detail::check(
          MPI_Improbe(MPI_ANY_SOURCE, for_server, group_.handle(), &is_there, &matched, &status),
          "MPI_Improbe");
      if (is_there == 0) {
        ++idle < 10 ? static_cast<void>(::sched_yield()) : static_cast<void>(::usleep(20));
        continue;
      }
      idle = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      message.resize(static_cast<std::size_t>(bytes));
      mpi::detail::check(MPI_Mrecv(message.data(), bytes, MPI_BYTE, &matched, MPI_STATUS_IGNORE),
                         "MPI_Mrecv");
      serve_one_(message, status.MPI_SOURCE);
    }
  } catch (const std::exception& e) {
    mpi::end_job(std::string("cannot serve its memory: ") + e.what());
  }
  void serve_one_(const std::vector<char>& message, process from) {
    request r;
    std::memcpy(&r, message.data(), sizeof r);
    const char* const payload = message.data() + sizeof r;
    std::uint64_t was = 0;
    const void* answer = &was;
    std::size_t bytes = 0;
    switch (r.what) {
      case job::get:
        answer = own_ + r.offset;
        bytes = r.count;
        break;
      case job::put:
        copy_(own_ + r.offset, payload, r.count);
        break;
      case job::accumulate:
        accumulate_(own_ + r.offset, payload, r.count, r.type, r.how);
        break;
      default:
        was = execute_(r);
        bytes = sizeof was;
    }
    mpi::detail::check(MPI_Send(answer, static_cast<int>(bytes), MPI_BYTE, from, r.reply, group_.handle()),
                       "MPI_Send");
  }

  mpi::communicator group_;
  std::byte* own_;
  std::mutex mutex_;          // of the two that follow
  std::list<flight> flying_;  // begun, and not yet being finished
  int next_tag_ = 0;
  std::atomic<bool> stop_{false};
  std::thread server_;
};

}  // namespace weft::inline WEFT_ABI::rma::detail
