#include <tuza/sched/rt/check.h>

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/backtrace.h>
#include <tuza/sched/rt/dump.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/print.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/schedtrace.h>

#include <atomic>
#include <cstdlib>

namespace tuza::rt {
namespace {

// A failure while reporting a failure ends the report.
std::atomic<bool> g_failing{false};

[[noreturn]] void report_and_abort(void (*details)() = nullptr) {
  if (g_failing.exchange(true)) std::abort();
  const M* m = current_m();
  if (m != nullptr && m->current != &m->g0) print_goroutine_line(*m->current);
  print(backtrace_here());
  if (m != nullptr && m->current != &m->g0) print_creator(*m->current);
  if (details != nullptr) details();
  if (m != nullptr) print_sched_state(*m->sched);
  std::abort();
}

}  // namespace

void fatal(std::string_view what) { fatal(what, nullptr); }

void fatal(std::string_view what, void (*details)()) {
  Line() << "tuza: fatal: " << what << "\n";
  report_and_abort(details);
}

void check_failed(const char* condition, const char* file, int line) {
  Line() << "tuza: CHECK failed: " << condition << " at " << file << ":" << line
         << "\n(this is a bug of Tuza, not of your program)\n";
  report_and_abort();
}

}  // namespace tuza::rt
