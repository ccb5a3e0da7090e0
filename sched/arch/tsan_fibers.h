// A store of ThreadSanitizer's fibers. To create one costs milliseconds, because libtsan clears all of its shadow
// stack, so a goroutine takes over the fiber of one that has ended.
//
// No race is hidden by this. A fiber is kept by the thread on which its goroutine ended, and whatever a thread runs
// later is ordered after that goroutine anyway: a switch synchronises (sanitizer.h).
#pragma once

#include <cstdint>

namespace tuza::rt {

struct TsanFiber {
  void* fiber = nullptr;
  std::uint32_t goroutines = 0;  // that it has served
};

// The calling thread's most recent fiber, or a new one.
TsanFiber take_tsan_fiber();

// The goroutine has left its stack by itself. Keeps the fiber for the calling thread, or destroys it.
void keep_tsan_fiber(TsanFiber fiber);

}  // namespace tuza::rt
