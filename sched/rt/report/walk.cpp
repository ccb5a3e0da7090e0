#include <tuza/sched/rt/report/walk.h>

#include <cstring>

namespace tuza::rt {
namespace {

#if defined(__aarch64__)
// Return addresses may be signed in their upper bits (-mbranch-protection=pac-ret).
constexpr std::uintptr_t kAddressMask = (std::uintptr_t{1} << 48) - 1;
#else
constexpr std::uintptr_t kAddressMask = ~std::uintptr_t{0};
#endif

// Not instrumented: ASan knows which parts of a stack belong to no variable, and the walk reads all of it.
[[gnu::no_sanitize_address]] std::uintptr_t word_at(std::uintptr_t address) {
  return *reinterpret_cast<const std::uintptr_t*>(address);
}

}  // namespace

std::size_t walk_pinned(const G& g, std::span<std::uintptr_t> pcs) {
  const auto sp = reinterpret_cast<std::uintptr_t>(g.context.sp);
  const std::uintptr_t top = g.stack.top;
  if (sp < g.stack.low || sp + kFrameBytes > top || pcs.empty()) return 0;
  std::size_t n = 0;
  pcs[n++] = word_at(sp + kFrameResume) - 1;
  // On both architectures, a frame pointer points to the caller's frame pointer, and the return address lies
  // above it.
  std::uintptr_t previous = sp;
  std::uintptr_t frame = word_at(sp + kFrameFp);
  while (n < pcs.size() && frame > previous && frame % sizeof(void*) == 0 &&
         frame + 2 * sizeof(void*) <= top) {
    const std::uintptr_t pc = word_at(frame + sizeof(void*)) & kAddressMask;
    if (pc == 0) break;
    pcs[n++] = pc - 1;  // the instruction after the call may belong to the next function
    previous = frame;
    frame = word_at(frame);
  }
  return n;
}

}  // namespace tuza::rt
