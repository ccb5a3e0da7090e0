#include <tuza/sched/rt/report/crash_report.h>

#include <cxxabi.h>
#include <signal.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/detail/exception_text.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/report/backtrace.h>
#include <tuza/sched/rt/report/dump.h>

#include <cstdlib>
#include <exception>
#include <typeinfo>

namespace tuza::rt {
namespace {

struct sigaction g_previous_segv, g_previous_bus;
std::terminate_handler g_previous_terminate = nullptr;

void report_overflow(const G& g) {
  begin_last_report();
  Line line;
  line << "fatal error: goroutine " << g.id.get() << " [running]";
  if (!g.name().empty()) line << " " << g.name();
  const std::size_t bytes = g.stack.top - g.stack.low;
  line << ": stack overflow (" << bytes / 1024 << " KiB; ";
  // There is no class between it and the largest one.
  const bool is_largest = bytes > kStackClassBytes[kStackClassBytes.size() - 2];
  is_largest ? line << "the largest stack there is" : line << "increase " << g.stack_setting.get();
  line << ")\n";
  line.flush();
  print_activity(g);
  print(backtrace_of_interrupted(), Naming::kAsyncSignalSafe);
  print_creator(g);
}

bool is_handler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// Calls the previous handler as the kernel would have called it.
void call(struct sigaction& previous, int number, siginfo_t* info, void* context) {
  const struct sigaction handler = previous;
  if ((static_cast<unsigned>(handler.sa_flags) & SA_RESETHAND) != 0) {
    previous = {};
    previous.sa_handler = SIG_DFL;
  }
  sigset_t blocked = handler.sa_mask, before;
  if ((handler.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, number);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  if ((handler.sa_flags & SA_SIGINFO) != 0) {
    handler.sa_sigaction(number, info, context);
  } else {
    handler.sa_handler(number);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Runs on the M's alternate stack, because the goroutine's own stack has no room left.
void on_fault(int signal_number, siginfo_t* info, void* context) {
  const M* m = current_m();
  const G* g = m == nullptr ? nullptr : m->current.get();
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool sent = info->si_code <= 0;  // by raise() or kill(): there is no fault address
  if (!sent && g != nullptr && g != &m->g0 && g->stack.guard_contains(address)) {
    report_overflow(*g);
    std::abort();
  }
  struct sigaction& previous = signal_number == SIGSEGV ? g_previous_segv : g_previous_bus;
  if (is_handler(previous)) return call(previous, signal_number, info, context);
  if (sent && previous.sa_handler == SIG_IGN) return;
  signal(signal_number, SIG_DFL);
  if (sent) raise(signal_number);  // a fault recurs by itself, now fatally
}

// Restores the previous handler, unless the program has replaced ours meanwhile.
void give_back(int number, const struct sigaction& previous) {
  struct sigaction now{};
  if (sigaction(number, nullptr, &now) == 0 && now.sa_sigaction == &on_fault)
    sigaction(number, &previous, nullptr);
}

void describe_exception(Line& line) {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return;
  int status = 0;
  char* readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  line << " by an exception of type " << (status == 0 ? readable : type->name());
  std::free(readable);
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& e) {
    line << ": " << tuza::detail::exception_text(e);
  } catch (...) {
    line << " (no std::exception)";
  }
}

// The standard library's own handler would only repeat the report. (That of libc++ has no name.)
bool is_of_the_library([[maybe_unused]] std::terminate_handler handler) {
#if defined(__GLIBCXX__)
  return handler == &__gnu_cxx::__verbose_terminate_handler;
#else
  return false;
#endif
}

[[noreturn]] void on_terminate() {
  const M* m = current_m();
  if (m == nullptr || m->current == &m->g0) {
    g_previous_terminate();
    std::abort();
  }
  const G& g = *m->current;
  begin_last_report();
  {
    Line line;
    line << "fatal error: goroutine " << g.id.get();
    if (!g.name().empty()) line << " (" << g.name() << ")";
    line << " terminated";
    describe_exception(line);
    line << "\n";
  }
  print_activity(g);
  // Nothing has been unwound: the stack is still that of the throw.
  print_program_frames(backtrace_here());
  print_creator(g);
  if (!is_of_the_library(g_previous_terminate)) g_previous_terminate();
  std::abort();
}

}  // namespace

void install_crash_reports() {
  struct sigaction action{};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &g_previous_segv);
  sigaction(SIGBUS, &action, &g_previous_bus);
  g_previous_terminate = std::set_terminate(&on_terminate);
}

void remove_crash_reports() {
  give_back(SIGSEGV, g_previous_segv);
  give_back(SIGBUS, g_previous_bus);
  if (std::get_terminate() == &on_terminate) std::set_terminate(g_previous_terminate);
}

}  // namespace tuza::rt
