// SPDX-License-Identifier: BSL-1.0
// An overflowing context is named and the program ends; every other fault goes where it went before.
#include "context/strand.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <weft/context/overflow.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

using weft::context::fiber;
using weft::context::install_overflow_handler;
using weft::context::overflow_guard;
using weft::context::set_task_name_hook;
using weft::context::stack;
using weft_test::child_result;
using weft_test::contains;
using weft_test::run_in_child;
namespace detail = weft::context::detail;

namespace {

volatile int deepest = 1 << 30;

/// Recursion with a frame of `Bytes`, of which the far end is written first.
template <std::size_t Bytes>
WEFT_TEST_OVERFLOWS [[gnu::noinline]] int descend(int depth) {
  volatile char frame[Bytes];
  frame[0] = static_cast<char>(depth);
  if (depth >= deepest) return depth;
  return descend<Bytes>(depth + 1) + frame[0];
}

/// What an overflow is made of: its frames and its stack, both in bytes.
struct overflow {
  void (*body)();
  std::size_t stack_bytes;
};

void run_on_fiber(const overflow& what) {
  static fiber* home;
  static void (*body)();
  fiber own;
  home = &own;
  body = what.body;
  fiber away(
      stack(what.stack_bytes),
      [](void* self) noexcept {
        body();
        fiber::switch_to(*static_cast<fiber*>(self), *home);
      },
      &away);
  fiber::switch_to(own, away);
}

const char* task_name() noexcept { return "digger"; }

child_result overflow_in_child(const overflow& what) {
  return run_in_child([&what] {
    install_overflow_handler();
    const overflow_guard guard;
    set_task_name_hook(task_name);
    run_on_fiber(what);
  });
}

std::string sentence(const char* name, std::size_t bytes) {
  return std::string("weft: stack overflow in task '") + name + "' (context stack of " +
         std::to_string(bytes) + " bytes; raise runtime_options::stack_size or WEFT_STACK_SIZE)\n";
}

bool died(const child_result& result) { return result.signal != 0 || result.exit_code != 0; }

/// Null where no optimiser sees it.
volatile int* nowhere() {
  volatile int* place = nullptr;
  asm volatile("" : "+r"(place));
  return place;
}

}  // namespace

TEST_CASE("an overflow is named, whatever the frames and the stack", "[context]") {
  int provoked = 0;
  int named = 0;
  for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{128} << 10, std::size_t{256} << 10,
                                  std::size_t{1} << 20, std::size_t{4} << 20}) {
    for (void (*body)() : {+[] { descend<16>(0); }, +[] { descend<700>(0); }, +[] { descend<9000>(0); },
                           +[] { descend<300'000>(0); }}) {
      const child_result result = overflow_in_child({body, bytes});
      ++provoked;
      const bool right = result.output == sentence("digger", bytes) && result.signal == SIGSEGV;
      named += right;
      if (!right) UNSCOPED_INFO(bytes << " bytes, signal " << result.signal << ": " << result.output);
    }
  }
  CHECK(provoked == 20);
  CHECK(named == 20);
}

TEST_CASE("control: without the recursion nothing is reported", "[context]") {
  const auto result = run_in_child([] {
    install_overflow_handler();
    const overflow_guard guard;
    deepest = 20;
    run_on_fiber({[] { descend<700>(0); }, 64 << 10});
  });
  CHECK(result.exit_code == 0);
  CHECK(result.output.empty());
}

TEST_CASE("an overflow on another kernel thread is named too", "[context]") {
  const auto result = run_in_child([] {
    install_overflow_handler();
    set_task_name_hook(task_name);
    std::thread([] {
      const overflow_guard guard;
      run_on_fiber({[] { descend<700>(0); }, 128 << 10});
    }).join();
  });
  CHECK(result.signal == SIGSEGV);
  CHECK(result.output == sentence("digger", 128 << 10));
}

TEST_CASE("a task without a name, or with a very long one, is reported all the same", "[context]") {
  const auto with_hook = [](weft::context::task_name_hook hook) {
    return run_in_child([hook] {
      install_overflow_handler();
      const overflow_guard guard;
      set_task_name_hook(hook);
      run_on_fiber({[] { descend<700>(0); }, 64 << 10});
    });
  };
  CHECK(with_hook(nullptr).output == sentence("unnamed", 64 << 10));
  CHECK(with_hook([]() noexcept -> const char* { return nullptr; }).output == sentence("unnamed", 64 << 10));
  static const std::string name(5000, 'x');
  const std::string cut = std::string(120, 'x') + "...";
  CHECK(with_hook([]() noexcept { return name.c_str(); }).output == sentence(cut.c_str(), 64 << 10));
}

TEST_CASE("control: other faults are not blamed on a stack", "[context]") {
  const auto null = run_in_child([] {
    install_overflow_handler();
    const overflow_guard guard;
    set_task_name_hook(task_name);
    run_on_fiber({[] { *nowhere() = 1; }, 64 << 10});
  });
  CHECK(died(null));
  CHECK_THAT(null.output, !contains("weft: stack overflow"));

  const auto forbidden = run_in_child([] {
    install_overflow_handler();
    const overflow_guard guard;
    void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *static_cast<volatile char*>(page) = 1;
  });
  CHECK(died(forbidden));
  CHECK_THAT(forbidden.output, !contains("weft: stack overflow"));

  const auto own_stack = run_in_child([] {  // the kernel thread's own stack is none of ours
    install_overflow_handler();
    std::thread([] {
      const overflow_guard guard;
      descend<700>(0);
    }).join();
  });
  CHECK(died(own_stack));
  CHECK_THAT(own_stack.output, !contains("weft: stack overflow"));

  const auto sent = run_in_child([] {
    install_overflow_handler();
    const overflow_guard guard;
    raise(SIGSEGV);
    std::puts("survived");
    std::fflush(stdout);
  });
  CHECK(died(sent));
  CHECK_THAT(sent.output, !contains("weft: stack overflow"));
  CHECK_THAT(sent.output, !contains("survived"));
}

TEST_CASE("a handler that was there before gets the faults that are not ours", "[context]") {
  const auto install_other = [](int flags) {
    struct sigaction other = {};
    other.sa_flags = flags;
    if ((flags & SA_SIGINFO) != 0) {
      other.sa_sigaction = [](int, siginfo_t* info, void*) {
        static_cast<void>(!write(STDOUT_FILENO, info->si_addr == nullptr ? "null\n" : "else\n", 5));
        _exit(7);
      };
    } else {
      other.sa_handler = [](int) { _exit(8); };
    }
    sigaction(SIGSEGV, &other, nullptr);
    install_overflow_handler();
    install_overflow_handler();  // the second call must not make the handler its own predecessor
  };
  const auto with_address = run_in_child([&] {
    install_other(SA_SIGINFO);
    const overflow_guard guard;
    *nowhere() = 1;
  });
  CHECK(with_address.exit_code == 7);
  CHECK(with_address.output == "null\n");
  const auto plain = run_in_child([&] {
    install_other(0);
    const overflow_guard guard;
    *nowhere() = 1;
  });
  CHECK(plain.exit_code == 8);
  const auto ours = run_in_child([&] {
    install_other(SA_SIGINFO);
    const overflow_guard guard;
    run_on_fiber({[] { descend<700>(0); }, 64 << 10});
  });
  CHECK(ours.signal == SIGSEGV);
  CHECK(ours.output == sentence("unnamed", 64 << 10));
}

TEST_CASE("signals that the program ignored stay ignored, faults do not", "[context]") {
  const auto ignore = [] {
    std::signal(SIGSEGV, SIG_IGN);
    install_overflow_handler();
  };
  const auto sent = run_in_child([&] {
    ignore();
    raise(SIGSEGV);
    std::printf("survived");
  });
  CHECK(sent.exit_code == 0);
  CHECK(sent.output == "survived");
  const auto fault = run_in_child([&] {
    ignore();
    *nowhere() = 1;
  });
  CHECK(died(fault));
  CHECK_THAT(fault.output, !contains("weft: stack overflow"));
}

TEST_CASE("a bus error goes to the handler of bus errors", "[context]") {
  const auto beyond_the_file = [] {
    std::FILE* const file = std::tmpfile();
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    *static_cast<volatile char*>(page) = 1;
  };
  const auto handled = run_in_child([&] {
    std::signal(SIGSEGV, [](int) { _exit(8); });
    std::signal(SIGBUS, [](int) { _exit(9); });
    install_overflow_handler();
    beyond_the_file();
  });
  CHECK(handled.exit_code == 9);
  const auto by_default = run_in_child([&] {
    std::signal(SIGBUS, SIG_DFL);
    install_overflow_handler();
    beyond_the_file();
  });
  CHECK(by_default.signal == SIGBUS);
}

TEST_CASE("a handler that leaves by siglongjmp works again and again", "[context]") {
  if constexpr (detail::tsan_on) return;  // it does not follow jumps out of handlers
  static sigjmp_buf resume;
  static volatile int caught;
  const auto result = run_in_child([] {
    struct sigaction other = {};
    other.sa_flags = SA_NODEFER;
    other.sa_handler = [](int) { siglongjmp(resume, 1); };
    sigaction(SIGSEGV, &other, nullptr);
    install_overflow_handler();
    caught = 0;
    if (sigsetjmp(resume, 0) != 0) caught = caught + 1;
    if (caught < 3) *nowhere() = 1;
    std::printf("caught %d", caught);
  });
  CHECK(result.exit_code == 0);
  CHECK(result.output == "caught 3");
}

TEST_CASE("a guard gives its thread a signal stack, and takes it away", "[context]") {
  bool none_before = false, there = false, gone = false, kept = false;
  std::thread([&] {
    stack_t present = {};
    sigaltstack(nullptr, &present);
    none_before = (present.ss_flags & SS_DISABLE) != 0;
    {
      const overflow_guard guard;
      sigaltstack(nullptr, &present);
      there = (present.ss_flags & SS_DISABLE) == 0 && present.ss_size >= 2 * 11'952;
      const void* const first = present.ss_sp;
      {
        const overflow_guard second;  // finds one and leaves it alone
      }
      sigaltstack(nullptr, &present);
      kept = (present.ss_flags & SS_DISABLE) == 0 && present.ss_sp == first;
    }
    sigaltstack(nullptr, &present);
    gone = (present.ss_flags & SS_DISABLE) != 0;
  }).join();
  CHECK(there);
  CHECK(kept);
  CHECK(gone == none_before);  // sanitizers bring a signal stack of their own, which stays
}

TEST_CASE("a guard whose signal stack somebody replaced leaves the other one in place", "[context]") {
  static char others[64 * 1024];
  bool kept = false;
  std::thread([&] {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    stack_t other = {};
    other.ss_sp = others;
    other.ss_size = sizeof others;
    {
      const overflow_guard guard;
      sigaltstack(&other, nullptr);
    }
    stack_t present = {};
    sigaltstack(nullptr, &present);
    kept = present.ss_sp == others;
    sigaltstack(&none, nullptr);
  }).join();
  CHECK(kept);
}

TEST_CASE("the line of a fault handler is cut where it would not fit", "[context]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const std::string part(119, 'a');
  detail::fault_text text;
  for (int i = 0; i < 5; ++i) text.add(part.c_str());
  text.write_to(ends[1]);
  text.write_to(-1);  // nobody listens: nothing to be done
  close(ends[1]);
  std::string got(1000, ' ');
  const ssize_t n = read(ends[0], got.data(), got.size());
  close(ends[0]);
  REQUIRE(n >= 0);
  got.resize(static_cast<std::size_t>(n));
  CHECK(got == std::string(512, 'a'));
}

TEST_CASE("the line of a fault handler survives interruptions", "[context]") {
  // Nobody reads until the alarm has interrupted the write twice.
  static int ends[2];
  static volatile int alarms;
  static volatile long drained;
  const auto report = run_in_child([] {
    if (pipe(ends) != 0) return;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    static const std::string block(4096, 'b');
    long filled = 0;
    for (ssize_t n = 0; (n = write(ends[1], block.data(), block.size())) > 0;) filled += n;
    fcntl(ends[1], F_SETFL, 0);
    struct sigaction ring = {};
    ring.sa_handler = [](int) {  // no SA_RESTART
      alarms = alarms + 1;
      static char away[4096];
      if (alarms == 3) drained = read(ends[0], away, sizeof away);
    };
    sigaction(SIGALRM, &ring, nullptr);
    const itimerval every{{0, 10'000}, {0, 10'000}};
    setitimer(ITIMER_REAL, &every, nullptr);
    detail::fault_text text;
    text.add("through");
    text.write_to(ends[1]);
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    std::string got(static_cast<std::size_t>(filled), ' ');
    const ssize_t n = read(ends[0], got.data(), got.size());
    got.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    std::printf("%s, %s", alarms >= 3 ? "interrupted" : "not interrupted", got.c_str() + filled - drained);
  });
  CHECK(report.exit_code == 0);
  CHECK(report.output == "interrupted, through");
}
