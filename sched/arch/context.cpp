#include <tuza/sched/arch/context.h>

#include <cstring>

namespace tuza::rt {
namespace {

void put(std::uintptr_t frame, std::size_t offset, std::uintptr_t word) {
  std::memcpy(reinterpret_cast<void*>(frame + offset), &word, sizeof word);
}

// The floating-point control words of a new goroutine: the ABI's defaults, not those of its spawner.
#if defined(__x86_64__)
constexpr std::uintptr_t kDefaultFpControl = 0x0000'037f'0000'1f80;  // x87 0x037f, mxcsr 0x1f80
#else
constexpr std::uintptr_t kDefaultFpControl = 0;
#endif

}  // namespace

Context make_context(std::uintptr_t stack_top, ContextEntry entry, void* argument) {
  // After the switch has popped the frame, sp equals `aligned`. tuza_context_entry then calls from a 16-byte
  // aligned stack, as both ABIs require.
  const std::uintptr_t aligned = stack_top & ~std::uintptr_t{15};
  const std::uintptr_t frame = aligned - kFrameBytes;
  std::memset(reinterpret_cast<void*>(frame), 0, kFrameBytes);
  put(frame, kFrameFpControl, kDefaultFpControl);
  put(frame, kFrameArgument, reinterpret_cast<std::uintptr_t>(argument));
  put(frame, kFrameFunction, reinterpret_cast<std::uintptr_t>(entry));
  put(frame, kFrameResume, reinterpret_cast<std::uintptr_t>(&tuza_context_entry));
  return Context{reinterpret_cast<void*>(frame)};
}

}  // namespace tuza::rt
