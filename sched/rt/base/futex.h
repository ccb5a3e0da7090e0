// The two futex operations that all other waiting is built on. Process-private.
//
// Thread-safe and async-signal-safe. futex_wait blocks the thread, and the P if the thread has one. So a thread with a P
// calls it for brief waits only, such as a contended RawMutex or SpinLock.
//
// Linux has them as a system call (futex_linux.cpp); elsewhere they are made of mutexes and condition variables
// (futex_posix.cpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace tuza::rt {

// Sleeps while `word` is `expected`, until a wake-up or for `timeout_ns` (negative: no limit). Spurious returns
// are possible: callers check their condition in a loop.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns = -1);

// Wakes up to `count` threads that wait for `word`. Uses only its address, as a name: the word may be gone.
void futex_wake(std::atomic<std::uint32_t>& word, int count);

}  // namespace tuza::rt
