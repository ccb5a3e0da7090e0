// Helpers shared by the tests of channels.
#pragma once

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/tests/testing.h>

#include <cstddef>
#include <mutex>
#include <thread>

namespace tuza::testing {

// The number of waiters in the queues of a channel.
template <class T>
std::size_t waiting(const Chan<T>& chan) {
  const rt::Enter rt;
  rt::ChanCore& core = *chan.core();
  const std::scoped_lock lock(core.lock());
  std::size_t n = 0;
  for (const rt::WaitQueue* queue : {&core.senders(), &core.receivers()}) {
    for (const rt::Waiter* w = queue->front(); w != nullptr; w = w->next) ++n;
  }
  return n;
}

// Runs on a goroutine or on a thread.
template <class T>
void until_waiting(const Chan<T>& chan, std::size_t n) {
  while (waiting(chan) != n) goroutine_id() != 0 ? yield() : std::this_thread::yield();
}

}  // namespace tuza::testing
