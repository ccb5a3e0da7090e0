#include <tuza/sched/rt/base/check.h>

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/thread_id.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/report/backtrace.h>
#include <tuza/sched/rt/report/dump.h>
#include <tuza/sched/rt/report/schedtrace.h>
#include <tuza/sched/rt/sched.h>

#include <atomic>
#include <cstdlib>

namespace tuza::rt {
namespace {

std::atomic<std::int64_t> g_reporting{0};  // the thread that reports

[[noreturn]] void report_and_abort(void (*print_frames)(const Backtrace&), void (*details)() = nullptr) {
  const M* m = current_m();
  if (m != nullptr && m->current != &m->g0) print_goroutine_line(*m->current);
  print_frames(backtrace_here());
  if (m != nullptr && m->current != &m->g0) print_creator(*m->current);
  if (details != nullptr) details();
  if (m != nullptr) print_sched_state(*m->sched);
  std::abort();
}

}  // namespace

void begin_last_report() {
  const std::int64_t self = own_thread_id();
  std::int64_t reporter = 0;
  if (g_reporting.compare_exchange_strong(reporter, self)) return print_last_words();
  if (reporter == self) std::abort();
  std::atomic<std::uint32_t> never{0};
  for (;;) futex_wait(never, 0);
}

void fatal(std::string_view what) { fatal(what, nullptr); }

void fatal(std::string_view what, void (*details)()) {
  begin_last_report();
  Line() << "tuza: fatal: " << what << "\n";
  report_and_abort(&print_program_frames, details);
}

void check_failed(const char* condition, const char* file, int line) {
  begin_last_report();
  Line() << "tuza: CHECK failed: " << condition << " at " << file << ":" << line
         << "\n(this is a bug in Tuza, not in your program)\n";
  report_and_abort([](const Backtrace& all) { print(all); });
}

}  // namespace tuza::rt
