#include <tuza/sched/rt/base/process.h>

#include <fcntl.h>
#include <tuza/sched/arch/calls.h>

#include <cerrno>

namespace tuza::rt {

void open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    // open() takes the lowest free number, which is this one.
    if (sys::fcntl(fd, F_GETFD) == -EBADF) sys::openat(AT_FDCWD, "/dev/null", O_RDWR);
  }
}

ProcessSetup::ProcessSetup() {
  open_standard_descriptors();
  ignored_ = sigaction(SIGPIPE, nullptr, &before_) == 0 && before_.sa_handler == SIG_DFL;
  if (!ignored_) return;
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

ProcessSetup::~ProcessSetup() {
  struct sigaction now{};  // the program may have installed a handler meanwhile
  if (ignored_ && sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_IGN)
    sigaction(SIGPIPE, &before_, nullptr);
}

}  // namespace tuza::rt
