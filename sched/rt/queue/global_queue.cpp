#include <tuza/sched/rt/queue/global_queue.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/queue/g_list_inline.h>

namespace tuza::rt {
namespace {

constexpr std::uint32_t kFirstCapacity = 512;  // one page

}  // namespace

GlobalQueue::~GlobalQueue() { unmap_pages(ring_, capacity_ * sizeof *ring_); }

void GlobalQueue::reserve(std::uint32_t more) {
  const std::uint32_t size = size_.load(std::memory_order_relaxed);
  if (size + more <= capacity_) return;
  std::uint32_t capacity = capacity_ == 0 ? kFirstCapacity : capacity_;
  while (capacity < size + more) capacity *= 2;
  auto** ring = static_cast<G**>(map_pages(capacity * sizeof *ring_));
  if (ring == nullptr) fatal("no memory for the global run queue");
  for (std::uint32_t i = 0; i < size; ++i) ring[i] = slot(head_ + i);
  unmap_pages(ring_, capacity_ * sizeof *ring_);
  ring_ = ring;
  capacity_ = capacity;
  head_ = 0;
}

void GlobalQueue::push(std::span<G* const> batch) {
  const LockGuard lock(mutex_);
  reserve(static_cast<std::uint32_t>(batch.size()));
  std::uint32_t tail = head_ + size_.load(std::memory_order_relaxed);
  for (G* g : batch) slot(tail++) = g;
  publish(tail - head_);
}

void GlobalQueue::push(GList&& batch) {
  const LockGuard lock(mutex_);
  reserve(batch.size());
  std::uint32_t tail = head_ + size_.load(std::memory_order_relaxed);
  while (G* g = batch.pop_front()) slot(tail++) = g;
  publish(tail - head_);
}

void GlobalQueue::push_front(G* g) {
  const LockGuard lock(mutex_);
  reserve(1);
  slot(--head_) = g;
  publish(size_.load(std::memory_order_relaxed) + 1);
}

void GlobalQueue::move_to(GlobalQueue& to, bool (*which)(const G& g)) {
  const LockBoth both(mutex_, to.mutex_);
  const std::uint32_t size = size_.load(std::memory_order_relaxed);
  const std::uint32_t before = to.size_.load(std::memory_order_relaxed);
  std::uint32_t kept = 0, moved = 0;
  to.reserve(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    G* g = slot(head_ + i);
    if (which(*g)) {
      to.slot(to.head_ + before + moved++) = g;
    } else {
      slot(head_ + kept++) = g;
    }
  }
  to.publish(before + moved);
  publish(kept);
}

std::uint32_t GlobalQueue::pop_batch(std::uint32_t procs, std::span<G*> out) {
  if (size() == 0) return 0;
  const LockGuard lock(mutex_);
  const std::uint32_t size = size_.load(std::memory_order_relaxed);
  const std::uint32_t n = batch_size(size, procs, static_cast<std::uint32_t>(out.size()));
  for (std::uint32_t i = 0; i < n; ++i) out[i] = slot(head_ + i);
  head_ += n;
  publish(size - n);
  return n;
}

}  // namespace tuza::rt
