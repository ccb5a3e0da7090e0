// The only interface through which the scheduler sees I/O. Netpoll implements it, and tests use fakes.
//
// The scheduler decides which thread waits and when; the source knows how. At most one thread blocks in
// poll() at a time, the holder of the poll role (sched/rt/queue/poll_role.h):
//
//   - An M without other work takes the role and blocks in poll(). The goroutines that become ready run on
//     that same thread, without a wake-up across cores.
//   - Ms that have work poll now and then without blocking.
//   - When no M has polled for a while because every M is busy, sysmon gives the role to the source's own
//     thread: take_over(). That thread queues what it finds and gives the role back, so that the next idle M
//     can take it.
//
// An implementation must be thread-safe. poll() may run on two threads at once (one of them not blocking).
#pragma once

#include <cstdint>

namespace tuza {

namespace rt {
class GList;
}

class IoSource {
 public:
  virtual ~IoSource() = default;

  // Adds the goroutines whose I/O is ready to `ready`, each claimed by G::win(). Waits at most `timeout_ns`
  // for the first (0: does not wait; negative: waits for ever), less if wake() is called. Blocks the M, which
  // holds no P unless the timeout is 0.
  virtual void poll(std::int64_t timeout_ns, rt::GList& ready) = 0;

  // Makes a blocking poll(), the current one or the next, return early.
  virtual void wake() = 0;

  // Gives the role to a thread of the source. That thread must block in poll() once, then call
  // rt::poll_role_returned() with the goroutines that it found. Must not block the caller.
  virtual void take_over() = 0;

  // The runtime stops. No thread is in poll() any more, and none will enter it.
  virtual void detach() = 0;
};

namespace rt {

// Call when a goroutine is about to wait for the source: from the commit of its park, before the source can
// find the goroutine. io_wait_ends() undoes the call, if the goroutine then does not wait or is readied by
// anything other than poll(). While any goroutine waits for the source, the source is polled and the program
// is not deadlocked.
void io_wait_begins();
void io_wait_ends();

}  // namespace rt

// Attaches the I/O source of the running runtime; at most one per run. Returns false if the runtime has one
// already or is not running. Any thread may call it. Does not park.
bool attach_io_source(IoSource& source);

}  // namespace tuza
