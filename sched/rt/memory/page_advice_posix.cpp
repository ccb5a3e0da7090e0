#include <tuza/sched/rt/memory/page_advice.h>

#include <sys/mman.h>

namespace tuza::rt {

// New pages in the place of the old ones. If the system refuses them, the old ones stay, with what is in them.
void give_back_pages(void* at, std::size_t bytes) {
  (void)::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void refuse_huge_pages(void*, std::size_t) {}

bool advise_guard(void*, std::size_t) { return false; }

// POSIX has no name for it. This is Linux's default, the lowest limit of a system in use: if guards took all of them, the
// next stack would find no memory.
std::size_t mappings_max() { return 65'530; }

}  // namespace tuza::rt
