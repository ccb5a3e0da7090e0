#include <tuza/sched/rt/report/activity.h>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/park.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tuza::rt {
namespace {

// The fences keep the compiler from moving accesses to the context past the store, for the handler's sake.
void set(G* g, Describe* describe, const void* context) {
  if (g == nullptr) return;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  g->describe = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  g->described = context;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  g->describe = describe;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

bool read_directly(void* into, const void* from, std::size_t bytes) {
  std::memcpy(into, from, bytes);
  return true;
}

bool read_by_kernel(void* into, const void* from, std::size_t bytes) {
  const struct iovec here{into, bytes}, there{const_cast<void*>(from), bytes};
  const long done = sys::invoke(SYS_process_vm_readv, sys::invoke(SYS_getpid), &here, 1, &there, 1, 0);
  return done == static_cast<long>(bytes);
}

}  // namespace

ActivityScope::ActivityScope(Describe* describe, const void* context) : g_(current_g()) {
  set(g_, describe, context);
}
ActivityScope::~ActivityScope() { set(g_, nullptr, nullptr); }

void ActivityText::read(const G& g) { read(g, &read_directly); }
void ActivityText::read_from_outside(const G& g) { read(g, &read_by_kernel); }

void ActivityText::read(const G& g, ReadMemory how) {
  Describe* describe = g.describe;
  size = describe == nullptr ? 0 : std::min(describe(g.described, how, bytes), bytes.size());
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] < 0x20 || bytes[i] > 0x7e) bytes[i] = '?';
  }
}

std::size_t append(std::span<char> into, std::size_t size, std::string_view text) {
  const std::size_t n = std::min(text.size(), into.size() - size);
  std::copy_n(text.data(), n, into.data() + size);
  return size + n;
}

}  // namespace tuza::rt
