#include <tuza/framework/detail/asio_thread.h>

#include <pthread.h>
#include <signal.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/base/thread_name.h>
#include <tuza/sched/rt/lifecycle/end_hook.h>
#include <tuza/sched/rt/park.h>

#include <system_error>
#include <utility>

namespace tuza::detail {
namespace {

// Process-directed signals must go to threads that expect them. Faults must be delivered to the thread that caused
// them, so they stay unblocked.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

AsioThread::AsioThread(std::function<void()> run, std::function<void()> stop)
    : run_(std::move(run)),
      stop_(std::move(stop)),
      running_(new rt::EndHook([](void* self) { static_cast<AsioThread*>(self)->begin(); },
                               [](void* self) { static_cast<AsioThread*>(self)->end(); }, this)) {}

AsioThread::~AsioThread() {
  if (rt::current_g() == nullptr) rt::fatal("an AsioContext destroyed on a thread that is not a goroutine");
}

void AsioThread::begin() {
  try {
    thread_ = std::thread([this] {
      rt::name_thread(pthread_self(), "tuza-asio");
      block_signals();
      run_();
    });
  } catch (const std::system_error& error) {
    const Error refused = rt::thread_refused("the thread of an AsioContext", error.code().value());
    throw std::system_error(error.code(), refused.message());
  }
}

void AsioThread::end() {
  stop_();
  blocking(CallLength::kLong, [this] { thread_.join(); });
}

}  // namespace tuza::detail
