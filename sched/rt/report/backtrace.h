// Back traces of the calling code, and of a parked goroutine.
//
// Both use the unwinder of the C++ runtime and its tables, and so need no frame pointers. For a parked
// goroutine the walk runs on the goroutine's own stack: the caller switches there, walks, and switches back
// (tuza_context_call). The walk needs some kilobytes below the goroutine's frames, which every stack has
// unless it is about to overflow.
//
// While the program keeps running, rt/report/walk.h takes the back trace of a parked goroutine.
//
// The walk allocates nothing. Printing looks names up in the files' symbol tables (rt/base/symbols.h), and
// demangles them unless told that the process is in a signal handler.
#pragma once

#include <tuza/sched/rt/g.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tuza::rt {

class Line;

struct Backtrace {
  static constexpr std::size_t kMax = 64;
  std::array<std::uintptr_t, kMax> pcs;
  std::size_t size = 0;
};

[[gnu::noinline]] Backtrace backtrace_here();
// For a signal handler: of the code that the signal has interrupted. Begins with the handler's own frames if the C library
// does not mark the frame in between.
[[gnu::noinline]] Backtrace backtrace_of_interrupted();

// `g` must be parked and stay parked. Must not be called on a goroutine.
Backtrace backtrace_of_parked(G& g);

enum class Naming { kDemangled, kAsyncSignalSafe };
// Describes one address: the function, the offset in it, and the position that addr2line takes.
void describe(Line& line, std::uintptr_t pc, Naming naming = Naming::kDemangled);
void print(std::span<const std::uintptr_t> pcs, Naming naming = Naming::kDemangled);
inline void print(const Backtrace& trace, Naming naming = Naming::kDemangled) {
  print(std::span(trace.pcs).first(trace.size), naming);
}

}  // namespace tuza::rt
