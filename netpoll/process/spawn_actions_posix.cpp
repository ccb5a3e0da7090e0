#include <tuza/netpoll/process/spawn_actions.h>

#include <signal.h>

#include <array>

namespace tuza::detail {
namespace {

struct Named {
  int number;
  const char* name;
};

// Those of POSIX: the numbers differ between systems.
constexpr std::array kSignals{
    Named{SIGABRT, "ABRT"}, Named{SIGALRM, "ALRM"}, Named{SIGBUS, "BUS"},      Named{SIGCHLD, "CHLD"},
    Named{SIGCONT, "CONT"}, Named{SIGFPE, "FPE"},   Named{SIGHUP, "HUP"},      Named{SIGILL, "ILL"},
    Named{SIGINT, "INT"},   Named{SIGKILL, "KILL"}, Named{SIGPIPE, "PIPE"},    Named{SIGPROF, "PROF"},
    Named{SIGQUIT, "QUIT"}, Named{SIGSEGV, "SEGV"}, Named{SIGSTOP, "STOP"},    Named{SIGSYS, "SYS"},
    Named{SIGTERM, "TERM"}, Named{SIGTRAP, "TRAP"}, Named{SIGTSTP, "TSTP"},    Named{SIGTTIN, "TTIN"},
    Named{SIGTTOU, "TTOU"}, Named{SIGURG, "URG"},   Named{SIGUSR1, "USR1"},    Named{SIGUSR2, "USR2"},
    Named{SIGXCPU, "XCPU"}, Named{SIGXFSZ, "XFSZ"}, Named{SIGVTALRM, "VTALRM"}};

}  // namespace

int close_from(posix_spawn_file_actions_t&, int) { return 0; }

const char* short_signal_name(int signal) {
  for (const Named& one : kSignals) {
    if (one.number == signal) return one.name;
  }
  return nullptr;
}

}  // namespace tuza::detail
