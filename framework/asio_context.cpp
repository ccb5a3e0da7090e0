#include <tuza/framework/asio_context.h>

#include <pthread.h>
#include <signal.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/lifecycle/end_hook.h>
#include <tuza/sched/rt/park.h>

#include <system_error>

namespace tuza {
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

AsioContext::AsioContext()
    : io_(1),
      work_(io_.get_executor()),
      running_(new rt::EndHook([](void* self) { static_cast<AsioContext*>(self)->begin(); },
                               [](void* self) { static_cast<AsioContext*>(self)->end(); }, this)) {}

AsioContext::~AsioContext() {
  if (rt::current_g() == nullptr) rt::fatal("an AsioContext destroyed on a thread that is not a goroutine");
}

void AsioContext::begin() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "tuza-asio");
    block_signals();
    io_.run();
  });
}

void AsioContext::end() {
  work_.reset();
  io_.stop();
  blocking(CallLength::kLong, [this] { thread_.join(); });
}

}  // namespace tuza
