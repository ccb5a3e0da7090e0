// Tells where a signal interrupted a thread: its registers, and whether it was at a futex call.
//
// A thread that returns from a futex call is between two steps of its program: it was woken to try for a
// lock, or has released a lock and woken others. A thread in the middle of code may hold a lock. So may a
// thread that returns from another system call: a thread that flushes a stream holds the stream's lock, and a
// thread that maps memory for malloc holds an arena's lock.
//
// Thread safety: async-signal-safe.
#pragma once

#include <cstdint>

namespace tuza {

struct Interrupted {
  std::uintptr_t pc = 0, sp = 0, fp = 0;
};

// `context`: the handler's third argument.
Interrupted interrupted_at(const void* context);

// Whether the thread was returning from a futex call, or is about to make or repeat one. `context`: the
// handler's third argument, or nullptr. Returns false if this cannot be determined.
bool interrupted_at_futex(const void* context);

}  // namespace tuza
