#include <tuza/sched/rt/report/activity.h>

#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/report/read_memory.h>

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

}  // namespace

ActivityScope::ActivityScope(Describe* describe, const void* context) : g_(current_g()) {
  set(g_, describe, context);
}
ActivityScope::~ActivityScope() { set(g_, nullptr, nullptr); }

void ActivityText::read(const G& g) { read(g, &read_directly); }
void ActivityText::read_from_outside(const G& g) { read(g, &read_memory_safely); }

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
