// SPDX-License-Identifier: BSL-1.0
// Comparison, explanation and last words.
#include "check.hpp"

#include "execute.hpp"
#include "interpret.hpp"
#include "shrink.hpp"
#include "support/environment.hpp"
#include "support/watchdog.hpp"
#include "value.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <sstream>

namespace property {
namespace {

std::string own_path() {
  char path[4096] = {};
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? path : "property";
}

std::string once(weft::runtime& rt, const program& p, const expectation& want, const setup& how, bool alone,
                 std::uint64_t* together) {
  const long before = counted::live(), corrupt = counted::corrupt();
  const observation got = how.seed % 2 == 0 ? execute_plain(rt, p, want) : execute_counted(rt, p, want);
  if (together != nullptr) *together += got.together;
  std::string text = compare(p, want, got);
  if (!text.empty() || !alone) return text;
  if (counted::live() != before)
    return std::to_string(counted::live() - before) + " instances of values or exceptions are left";
  return counted::corrupt() != corrupt ? "a value was used before its construction or after its destruction"
                                       : "";
}

char command_text[1024] = "";
timer_t clock_id;
bool has_clock = false;

void print_command() {
  const char text[] = "the program that was running; to repeat it:\n  ";
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
  n = write(STDERR_FILENO, command_text, std::strlen(command_text));
}

void on_fault(int signal) {
  print_command();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void on_time(int) {
  const char text[] = "hang: one random program exceeds its time limit\n";
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
  for (weft_test::dumper d : weft_test::detail::dumpers)
    if (d != nullptr && d != print_command) d();
  std::abort();  // on_fault prints the command
}

struct taken_signal {
  int number;
  void (*handler)(int);
  struct sigaction before = {};
};
taken_signal taken[] = {{SIGVTALRM, on_time}, {SIGABRT, on_fault}, {SIGSEGV, on_fault}};

void set_clock(unsigned seconds) {
  if (!has_clock) return;
  itimerspec t{};
  t.it_value.tv_sec = seconds;
  timer_settime(clock_id, 0, &t, nullptr);
}

}  // namespace

std::string setup::command() const {
  std::ostringstream out;
  out << "WEFT_TEST_ONLY=" << seed << " WEFT_TEST_WORKERS=" << workers << " WEFT_TEST_INLINING=" << inlining
      << " WEFT_TEST_SURPLUS=" << surplus << " WEFT_TEST_CAP=" << cap << " WEFT_TEST_SPIN=" << spin
      << " WEFT_TEST_PLANT=" << static_cast<int>(fault) << " '" << own_path() << "' 'one program'";
  return out.str();
}

std::string difference(weft::runtime& rt, const program& p, const setup& how, bool alone,
                       std::uint64_t* together) {
  return once(rt, p, interpret(p, how.fault), how, alone, together);
}

std::string explain(weft::runtime& rt, const program& p, const setup& how, const std::string& first) {
  std::string last = first;
  int tries = 1;
  const auto fails = [&](const program& q) {
    last_words::give_time();
    const expectation want = interpret(q, how.fault);
    for (int i = 0; i < tries; ++i) {
      const std::string text = once(rt, q, want, how, true, nullptr);
      if (text.empty()) continue;
      last = text;
      return true;
    }
    return false;
  };
  int again = 0, rounds = 0;  // how often it fails says how often to try a smaller one
  for (; rounds < 40; ++rounds) again += fails(p);
  tries = again == 0 ? 200 : 1 + 4 * rounds / again;
  const program small = shrink(p, fails, std::chrono::seconds(20));
  std::ostringstream out;
  out << first << "\nseed " << how.seed << ", " << how.workers << " workers, inlining " << how.inlining
      << ", surplus " << how.surplus << ", cap " << how.cap << ", spin " << how.spin << ", values "
      << (how.seed % 2 == 0 ? "plain" : "counted") << "\nshrunk from size " << size(p) << " to "
      << size(small) << ", where " << last << ":\n"
      << print(small) << "to repeat it:\n  " << how.command() << '\n';
  return out.str();
}

last_words::last_words() {
  static const bool registered = (weft_test::on_hang(print_command), true);
  static_cast<void>(registered);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGVTALRM;
  has_clock = timer_create(CLOCK_MONOTONIC, &event, &clock_id) == 0;
  for (taken_signal& t : taken) {
    struct sigaction ours = {};
    ours.sa_handler = t.handler;
    ours.sa_flags = SA_ONSTACK;
    sigaction(t.number, &ours, &t.before);
  }
}

last_words::~last_words() {
  if (has_clock) timer_delete(clock_id);
  has_clock = false;
  for (const taken_signal& t : taken) sigaction(t.number, &t.before, nullptr);
}

void last_words::give_time() { set_clock(60 * weft_test::scale()); }

void last_words::now(const setup& how) {
  const std::string text = how.command() + '\n';
  std::strncpy(command_text, text.c_str(), sizeof command_text - 1);
  set_clock(20 * weft_test::scale());
}

}  // namespace property
