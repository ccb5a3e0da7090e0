// The one interface through which the scheduler sees I/O. Implemented by netpoll, and by fakes in tests.
//
// The scheduler decides who waits and when; the source knows how. At most one thread blocks in poll() at a
// time, the holder of the poll role (sched/rt/queue/poll_role.h):
//
//   - an M that finds nothing else to do takes the role and blocks in poll(); the goroutines that become
//     ready run on that very thread, without a wake-up across cores;
//   - Ms that have work poll without blocking now and then;
//   - when nobody has polled for a while because every M is busy, sysmon gives the role to the source's
//     own thread: take_over(). It passes on what it finds and lets the role go, so that the next idle M
//     has it again.
//
// An implementation is thread-safe. poll() may run on two threads at once (one of them not blocking).
#pragma once

#include <cstdint>

namespace tuza {

namespace rt {
class GList;
}

class IoSource {
 public:
  virtual ~IoSource() = default;

  // Adds the goroutines whose I/O is ready to `ready`, each claimed by G::win(). Waits at most
  // `timeout_ns` for the first (0: does not wait; negative: for ever), less if wake() is called. Blocks
  // the M, which holds no P unless the timeout is 0.
  virtual void poll(std::int64_t timeout_ns, rt::GList& ready) = 0;

  // Makes a blocking poll(), the present one or the next, return early.
  virtual void wake() = 0;

  // The role goes to a thread of the source: block in poll() once there, then call
  // rt::poll_role_returned() with what was found. Must not block the caller.
  virtual void take_over() = 0;

  // The runtime stops. No thread is in poll() any more, and none will come.
  virtual void detach() = 0;
};

namespace rt {

// A goroutine is about to wait for the source: called by the commit of its park, before the source can find
// it. Taken back by io_wait_ends(), if it then does not wait or is readied otherwise than by poll(). While
// any goroutine waits, the source is polled and the program is not deadlocked.
void io_wait_begins();
void io_wait_ends();

}  // namespace rt

// Gives the running runtime its source of I/O; at most one per run. Returns false if one is there already.
// Any thread. Does not park.
bool attach_io_source(IoSource& source);

}  // namespace tuza
