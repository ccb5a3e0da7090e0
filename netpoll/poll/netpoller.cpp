#include <tuza/netpoll/poll/netpoller.h>

#include <errno.h>
#include <tuza/netpoll/detail/end_of_run.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/machine_thread.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/poll_role.h>

#include <array>
#include <memory>
#include <mutex>

namespace tuza::net {
namespace {

rt::RawMutex g_netpoller_mutex;
std::atomic<Netpoller*> g_netpoller{nullptr};  // written under g_netpoller_mutex

void collect(rt::GList& ready, rt::G* g) {
  if (g == nullptr) return;
  g->win();
  ready.push_back(g);
}

}  // namespace

// detach() deletes the netpoller meanwhile neither for an M, which the end of the run waits for while it is inside, nor for
// another thread, which holds the mutex.
void Netpoller::forget(int fd, std::uint32_t generation) {
  // After the end of the run, an M that was left behind must not enter: it would never come back to close the number.
  if (rt::is_forked_child() || g_netpoller.load(std::memory_order_acquire) == nullptr) return;
  const rt::Enter rt;
  std::unique_lock<rt::RawMutex> lock(g_netpoller_mutex, std::defer_lock);
  if (rt.m() == nullptr) lock.lock();
  Netpoller* const netpoller = g_netpoller.load(std::memory_order_acquire);
  if (netpoller != nullptr && generation == Netpoller::generation()) netpoller->poller_.remove(fd);
}

Result<Netpoller*> Netpoller::get() {
  // After a fork, the child shares the epoll instance with its parent, and must not change it.
  if (rt::is_forked_child()) return std::unexpected(Error(Errc::kNotRunning, "netpoll"));
  if (Netpoller* existing = g_netpoller.load(std::memory_order_acquire)) return existing;
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the mutex
  const LockGuard lock(g_netpoller_mutex);
  if (Netpoller* existing = g_netpoller.load(std::memory_order_relaxed)) return existing;
  long error = 0;
  std::unique_ptr<Netpoller> made(new Netpoller(error));
  if (error != 0) return std::unexpected(Error::from_errno(static_cast<int>(-error), "netpoll"));
  const int refused =
      rt::start_helper_thread<&Netpoller::thread_main>(made->thread_, "tuza-netpoll", made.get());
  if (refused != 0) return std::unexpected(rt::thread_refused("the poller's thread", refused));
  if (!attach_io_source(*made)) {
    made->stop_thread();
    return std::unexpected(Error(Errc::kNotRunning, "netpoll"));
  }
  generation_.fetch_add(1, std::memory_order_release);
  g_netpoller.store(made.get(), std::memory_order_release);
  return made.release();
}

void Netpoller::poll(std::int64_t timeout_ns, rt::GList& ready) {
  std::array<PollEvent, 128> events;
  const std::size_t n = tuza_poller_wait(poller_, timeout_ns, events.data(), events.size());
  for (std::size_t i = 0; i < n; ++i) {
    Descriptor* descriptor = Descriptor::from_cookie(events[i].cookie);
    if (descriptor == nullptr) continue;  // closed in the meantime
    const Descriptor::Woken woken =
        descriptor->deliver({events[i].readable, events[i].writable, events[i].hung_up}, events[i].cookie);
    collect(ready, woken.reader);
    collect(ready, woken.writer);
  }
}

void Netpoller::take_over() { note_.wake(); }

void* Netpoller::thread_main(void* self) {
  static_cast<Netpoller*>(self)->run();
  return nullptr;
}

void Netpoller::run() {
  for (;;) {
    note_.sleep();
    if (stopping_.load(std::memory_order_acquire)) return;
    rt::GList ready;
    poll(-1, ready);
    rt::poll_role_returned(std::move(ready));
  }
}

void Netpoller::stop_thread() {
  stopping_.store(true, std::memory_order_release);
  poller_.wake();
  note_.wake();
  rt::join_helper_thread(thread_);
}

void Netpoller::detach() {
  give_back_signals();
  stop_thread();
  {
    const LockGuard lock(g_netpoller_mutex);
    generation_.fetch_add(1, std::memory_order_release);
    g_netpoller.store(nullptr, std::memory_order_release);
  }
  delete this;
}

}  // namespace tuza::net
