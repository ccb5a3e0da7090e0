// Memory straight from the kernel, for everything in the runtime that must not come from malloc.
//
// Zeroed, page-aligned, committed by touch. Thread-safe.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

#include <cstddef>

namespace tuza::rt {

// Null when the kernel refuses.
inline void* map_pages(std::size_t bytes) {
  const long at = sys::invoke(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at < 0 && at > -4096 ? nullptr : reinterpret_cast<void*>(at);
}

inline void unmap_pages(void* at, std::size_t bytes) {
  if (at != nullptr) sys::invoke(SYS_munmap, at, bytes);
}

// 0 or -errno.
inline long advise_pages(void* at, std::size_t bytes, int advice) {
  return sys::invoke(SYS_madvise, at, bytes, advice);
}

}  // namespace tuza::rt
