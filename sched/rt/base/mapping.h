// Memory from the kernel, for the parts of the runtime that must not call malloc.
//
// Zeroed, page-aligned, committed when first touched. Thread-safe.
#pragma once

#include <sys/mman.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/arch/sanitizer.h>

#include <cstddef>

namespace tuza::rt {

// Null if the kernel refuses.
inline void* map_pages(std::size_t bytes) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | sys::kMapWithoutReserve;
  if constexpr (kTsan) {
    // Through libc, which TSan intercepts: it must forget earlier accesses to these addresses.
    void* at = ::mmap(nullptr, bytes, kProtection, kFlags, -1, 0);
    return at == MAP_FAILED ? nullptr : at;
  }
  const long at = sys::mmap(nullptr, bytes, kProtection, kFlags, -1, 0);
  return at < 0 && at > -4096 ? nullptr : reinterpret_cast<void*>(at);
}

inline void unmap_pages(void* at, std::size_t bytes) {
  if (at == nullptr) return;
  if constexpr (kTsan) {
    ::munmap(at, bytes);
  } else {
    sys::munmap(at, bytes);
  }
}

}  // namespace tuza::rt
