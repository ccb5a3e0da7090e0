// Learning that a thread ends while the runtime still counts on it.
//
// exit() destroys the thread-locals of the thread that calls it before anything else, statics included;
// pthread_exit() destroys them when it has unwound the thread. A thread-local of ours that is made first is destroyed
// last, so what it calls runs between the program's thread-locals and its statics.
//
// Thread safety: thread-safe.
#pragma once

namespace tuza::rt {

// From now on `function` is called when the calling thread ends, or calls exit(). One function for the process.
void notice_thread_end(void (*function)());

// The address of something on the stack that the caller uses.
[[nodiscard, gnu::noinline]] const void* some_stack_address();

}  // namespace tuza::rt
