// A running child, until it is reaped. Internal: not installed.
//
// A goroutine per child, the watcher, waits until the child can be reaped, and reaps it at once; everybody else waits for
// the watcher's latch. So a child is reaped whether its Process is waited for, detached or gone, and a wait can end with a
// context. Number and pidfd refer to the child as long as it is not reaped: signals are sent under the lock that reaping
// takes.
//
// The Child is shared by its Process, by the watcher, by the goroutine that follows the end of the context, and by the timer
// of SIGKILL.
#pragma once

#include <tuza/netpoll/process.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/after_func.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

namespace tuza::detail {

class Child : public std::enable_shared_from_this<Child> {
 public:
  struct Plan {
    std::string program;
    bool own_group = false;
    std::chrono::nanoseconds grace{};
  };
  // Made before its process, which would run on without anybody if there were no memory for this.
  explicit Child(Plan plan) : plan_(std::move(plan)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The process `pid` is there. Starts the watcher. The end of `ctx` stops the child. An error: there is no memory for the
  // watcher, and the child is gone.
  [[nodiscard]] Result<void> watch(pid_t pid, const Context& ctx);
  void forget_context();

  [[nodiscard]] pid_t pid() const { return pid_; }
  Result<void> signal(int number);
  void stop();
  Result<ExitStatus> wait(const Context& ctx);
  // For the destructor, anywhere: stops the child, and returns when it is gone.
  void end();

 private:
  [[nodiscard]] Result<void> start_watcher();
  void wait_and_reap();
  // 0: reaped, now or before. -EAGAIN: it runs. Otherwise -errno. `pidfd`: -1 if there is none.
  long reap(int pidfd);
  void reap_on_this_thread();
  // Of a child that runs.
  [[nodiscard]] long send(int number) const TUZA_REQUIRES(mutex_);
  void kill_now();

  const Plan plan_;
  pid_t pid_ = -1;   // constant after watch()
  rt::RunMark run_;  // of the watcher; constant after watch()
  Latch gone_{1};    // at zero, the status is constant

  Mutex mutex_;
  bool reaped_ TUZA_GUARDED_BY(mutex_) = false;
  bool stopping_ TUZA_GUARDED_BY(mutex_) = false;
  DelayedCall kill_later_ TUZA_GUARDED_BY(mutex_);
  std::optional<WhenDone> follows_ TUZA_GUARDED_BY(mutex_);  // the context
  Result<ExitStatus> status_;                                // written before gone_
};

}  // namespace tuza::detail
