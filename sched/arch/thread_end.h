// Notices that a thread ends while the runtime still counts on it.
//
// exit() destroys the thread-locals of the calling thread before anything else, statics included;
// pthread_exit() destroys them after it has unwound the thread. The thread-local that is constructed first is
// destroyed last. If the runtime's thread-local is the first, the function that it calls runs between the
// destruction of the program's thread-locals and that of its statics.
//
// Thread safety: thread-safe.
#pragma once

namespace tuza::rt {

// From now on `function` is called when the calling thread ends or calls exit(). All threads of the process
// must pass the same function.
void notice_thread_end(void (*function)());

// Returns an address on the stack that the caller runs on.
[[nodiscard, gnu::noinline]] const void* some_stack_address();

}  // namespace tuza::rt
