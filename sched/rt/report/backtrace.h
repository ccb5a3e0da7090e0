// Back traces: of the calling code, and of a goroutine that is parked.
//
// Both go through the unwinder of the C++ runtime and its tables, so they need no frame pointers. For a
// parked goroutine the walk starts on its own stack: we switch there, walk, and switch back
// (tuza_context_call). It needs some kilobytes below the goroutine's frames, which every stack has unless
// it is about to overflow.
//
// While the program goes on, rt/report/walk.h takes the back trace of a parked goroutine.
//
// Allocates nothing while walking. Printing looks names up in the files' symbol tables (rt/base/symbols.h), and
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

// `g` must be parked and stay so. Must not be called on a goroutine.
Backtrace backtrace_of_parked(G& g);

enum class Naming { kDemangled, kAsyncSignalSafe };
// One address: the function, how far in, and where addr2line finds it.
void describe(Line& line, std::uintptr_t pc, Naming naming = Naming::kDemangled);
void print(std::span<const std::uintptr_t> pcs, Naming naming = Naming::kDemangled);
inline void print(const Backtrace& trace, Naming naming = Naming::kDemangled) {
  print(std::span(trace.pcs).first(trace.size), naming);
}

}  // namespace tuza::rt
