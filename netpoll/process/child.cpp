#include <tuza/netpoll/process/child.h>

#include <signal.h>
#include <sys/wait.h>
#include <tuza/netpoll/detail/owners.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/process/child_end.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/fork.h>

#include <cerrno>
#include <new>
#include <utility>

namespace tuza::detail {
namespace {

ExitStatus exit_status(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return ExitStatus::exited(info.si_status);
  return ExitStatus::killed(info.si_status, info.si_code == CLD_DUMPED);
}

// Null if the kernel has no pidfds, or refuses this one: the watcher takes a thread then.
net::detail::DescriptorOwner watch_end(pid_t pid) {
  const long fd = open_pidfd(pid);
  if (fd < 0) return nullptr;
  const Result<net::Descriptor*> opened = net::Descriptor::open(static_cast<int>(fd), "wait");
  return net::detail::DescriptorOwner(opened ? *opened : nullptr);
}

}  // namespace

Result<void> Child::watch(pid_t pid, const Context& ctx) {
  pid_ = pid;
  run_.set();
  const Result<void> watched = start_watcher();
  if (!watched) {
    kill_now();
    reap_on_this_thread();
    return std::unexpected(Error(watched.error().code(), "start", plan_.program));
  }
  if (ctx.event() == nullptr) return {};
  WhenDone follows = when_done(ctx, [self = shared_from_this()] { self->stop(); });
  const LockGuard lock(mutex_);
  if (!reaped_) follows_.emplace(std::move(follows));
  return {};
}

Result<void> Child::start_watcher() try {
  return try_go({.name = "process"}, [self = shared_from_this()] { self->wait_and_reap(); });
} catch (const std::bad_alloc&) {
  return std::unexpected(Error::from_errno(ENOMEM, "start", plan_.program));
}

void Child::forget_context() {
  const LockGuard lock(mutex_);
  follows_.reset();
}

void Child::wait_and_reap() {
  if (const net::detail::DescriptorOwner pidfd = watch_end(pid_); pidfd != nullptr) {
    const auto reap_now = [this](int fd) { return reap(fd); };
    if (pidfd->retry(net::Descriptor::Side::kRead, "wait", reap_now)) return;
  }
  reap_on_this_thread();
}

void Child::reap_on_this_thread() {
  siginfo_t info{};
  do {
    blocking_syscall(CallLength::kLong, wait_for_end, -1, pid_, &info, WEXITED | WNOWAIT);
  } while (reap(-1) == -EAGAIN);
}

long Child::reap(int pidfd) {
  siginfo_t info{};
  const auto ask = [&, this](int flags) { return wait_for_end(pidfd, pid_, &info, flags); };
  const LockGuard lock(mutex_);
  if (reaped_) return 0;
  long error = ask(WEXITED | WNOHANG | WNOWAIT);
  if (error == 0 && info.si_pid == 0) return -EAGAIN;
  if (error != 0 && error != -ECHILD && pidfd >= 0) return error;  // the number may do
  // While the child is a zombie, no other group can have its number.
  if (error == 0 && stopping_ && plan_.own_group) (void)send(SIGKILL);
  if (error == 0) error = ask(WEXITED | WNOHANG);
  if (error == 0) {
    status_ = exit_status(info);
  } else {
    status_ = std::unexpected(Error::from_errno(static_cast<int>(-error), "wait", plan_.program));
  }
  reaped_ = true;
  kill_later_ = {};
  follows_.reset();
  gone_.count_down();
  return 0;
}

long Child::send(int number) const { return sys::kill(plan_.own_group ? -pid_ : pid_, number); }

Result<void> Child::signal(int number) {
  const LockGuard lock(mutex_);
  const long error = reaped_ ? -ESRCH : send(number);
  if (error == 0) return {};
  return std::unexpected(Error::from_errno(static_cast<int>(-error), "signal", plan_.program));
}

void Child::stop() {
  const LockGuard lock(mutex_);
  if (reaped_ || std::exchange(stopping_, true)) return;
  if (plan_.grace.count() <= 0 || !run_.is_on()) {
    (void)send(SIGKILL);
    return;
  }
  (void)send(SIGTERM);
  try {
    kill_later_ = after_func(plan_.grace, [self = shared_from_this()] { self->kill_now(); });
  } catch (const std::bad_alloc&) {
    (void)send(SIGKILL);  // nobody would do it later
  }
}

void Child::kill_now() {
  const LockGuard lock(mutex_);
  if (!reaped_) (void)send(SIGKILL);
}

Result<ExitStatus> Child::wait(const Context& ctx) {
  if (run_.ended()) {
    reap_on_this_thread();  // the watcher is gone with its run
  } else if (const Result<void> waited = gone_.wait(ctx); !waited) {
    return std::unexpected(waited.error());
  }
  return status_;
}

void Child::end() {
  if (rt::is_forked_child()) return;  // the child is the parent's
  stop();
  (void)wait(Context::background());
}

}  // namespace tuza::detail
