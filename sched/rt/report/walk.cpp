#include <tuza/sched/rt/report/walk.h>

#include <tuza/sched/arch/tagged_address.h>

#include <cstring>

namespace tuza::rt {
namespace {

// Not instrumented: the walk reads all of a stack, also what belongs to no variable (ASan), and what was left there by
// others that used it (TSan).
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] std::uintptr_t word_at(std::uintptr_t address) {
  return *reinterpret_cast<const std::uintptr_t*>(address);
}

// A frame pointer points to the caller's frame pointer, and the return address lies above it, on both
// architectures. Frame pointers lie in (`below`, `top`). `frame` may be any word, so nothing is added to it.
bool is_frame(std::uintptr_t frame, std::uintptr_t below, std::uintptr_t top) {
  return frame > below && frame % sizeof(void*) == 0 && frame <= top - 2 * sizeof(void*);
}

std::size_t walk(std::uintptr_t frame, std::uintptr_t below, std::uintptr_t top,
                 std::span<std::uintptr_t> pcs, std::size_t n) {
  while (n < pcs.size() && is_frame(frame, below, top)) {
    // aarch64 may sign return addresses in the bits above (-mbranch-protection=pac-ret).
    const std::uintptr_t pc = word_at(frame + sizeof(void*)) & kAddressMask;
    if (pc == 0) break;
    pcs[n++] = pc - 1;  // the instruction after the call may belong to the next function
    below = frame;
    frame = word_at(frame);
  }
  return n;
}

// Whether the frames from here on lead to the first frame of the goroutine, whose saved pointer is null.
bool leads_to_the_first(std::uintptr_t frame, std::uintptr_t below, std::uintptr_t top) {
  constexpr std::size_t kMost = 1000;
  for (std::size_t n = 0; n < kMost && is_frame(frame, below, top); ++n) {
    below = frame;
    frame = word_at(frame);
    if (frame == 0) return n > 0;
  }
  return false;
}

// The frame pointer that an interrupted function has saved before it used the register for something else.
std::uintptr_t find_saved_frame(std::uintptr_t sp, std::uintptr_t top) {
  constexpr std::size_t kWordsMost = 512;
  std::uintptr_t at = (sp + sizeof(void*) - 1) / sizeof(void*) * sizeof(void*);
  for (std::size_t n = 0; n < kWordsMost && at + sizeof(void*) <= top; ++n, at += sizeof(void*)) {
    if (const std::uintptr_t frame = word_at(at); leads_to_the_first(frame, at, top)) return frame;
  }
  return 0;
}

}  // namespace

std::size_t walk_pinned(const G& g, std::span<std::uintptr_t> pcs) {
  const auto sp = reinterpret_cast<std::uintptr_t>(g.context.sp);
  if (sp < g.stack.low || sp + kFrameBytes > g.stack.top || pcs.empty()) return 0;
  pcs[0] = word_at(sp + kFrameResume) - 1;
  return walk(word_at(sp + kFrameFp), sp, g.stack.top, pcs, 1);
}

std::size_t walk_interrupted(const G& g, const Interrupted& at, std::span<std::uintptr_t> pcs) {
  if (pcs.empty()) return 0;
  pcs[0] = at.pc;
  if (at.sp < g.stack.low || at.sp >= g.stack.top) return 1;  // on a stack that the program has made
  const bool usable = leads_to_the_first(at.fp, at.sp - 1, g.stack.top);
  const std::uintptr_t frame = usable ? at.fp : find_saved_frame(at.sp, g.stack.top);
  return walk(frame, at.sp - 1, g.stack.top, pcs, 1);
}

}  // namespace tuza::rt
