// Foreign threads: threads of this process that the runtime does not know. A library made them, or the program.
//
// A foreign thread may wake a goroutine at any time, and nothing tells whether it will. So no deadlock is reported while
// one exists (rt/report/deadlock.h). A known thread wakes no goroutine that waits while all others wait too: the Ms, the
// runtime's helper threads, the thread that called run(), and the log's thread while it waits for lines.
//
// The kernel counts the threads of the process, and this file the known ones. A thread counts as known from its own first
// lines to its last ones, so for a moment at both ends a known thread is taken for a foreign one, and never a foreign one
// for known. After a fork() the child begins at zero.
//
// Thread-safe. Allocates nothing.
#pragma once

namespace tuza::rt {

// The calling thread, or another that waits under a lock of the caller's, becomes known or foreign.
void thread_becomes_known();
void thread_becomes_foreign();

// The calling thread is known while this lives.
class KnownThread {
 public:
  KnownThread() { thread_becomes_known(); }
  ~KnownThread() { thread_becomes_foreign(); }
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;
};

// Whether there are foreign threads. Also true if they cannot be counted: without /proc, without a free descriptor, or
// while threads come and go. Blocks the M for some system calls, about 10 us.
bool foreign_threads_exist();

}  // namespace tuza::rt
