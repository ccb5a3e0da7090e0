#include <tuza/sched/rt/timer_heap.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/mapping.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>

namespace tuza::rt {
namespace {

constexpr std::size_t kArity = 4;
constexpr std::size_t kFirstCapacity = 256;  // one page

}  // namespace

TimerHeap::~TimerHeap() { unmap_pages(entries_, capacity_ * sizeof(Entry)); }

void TimerHeap::disarm_all() {
  const std::scoped_lock lock(mutex_);
  const std::size_t size = size_.exchange(0, std::memory_order_relaxed);
  for (const Entry& entry : std::span(entries_, size)) {
    entry.timer->heap.store(nullptr, std::memory_order_release);
  }
  publish();
}

void TimerHeap::grow() {
  const std::size_t capacity = capacity_ == 0 ? kFirstCapacity : capacity_ * 2;
  auto* entries = static_cast<Entry*>(map_pages(capacity * sizeof(Entry)));
  if (entries == nullptr) fatal("out of memory for timers");
  if (capacity_ != 0) std::memcpy(entries, entries_, capacity_ * sizeof(Entry));
  unmap_pages(entries_, capacity_ * sizeof(Entry));
  entries_ = entries;
  capacity_ = capacity;
}

void TimerHeap::place(std::size_t at, Entry entry) {
  entries_[at] = entry;
  entry.timer->index = static_cast<std::uint32_t>(at);
}

void TimerHeap::sift_up(std::size_t at, Entry entry) {
  while (at > 0) {
    const std::size_t parent = (at - 1) / kArity;
    if (entries_[parent].when_ns <= entry.when_ns) break;
    place(at, entries_[parent]);
    at = parent;
  }
  place(at, entry);
}

void TimerHeap::sift_down(std::size_t at, Entry entry) {
  const std::size_t size = size_.load(std::memory_order_relaxed);
  for (;;) {
    const std::size_t first = at * kArity + 1;
    if (first >= size) break;
    std::size_t least = first;
    for (std::size_t c = first + 1; c < std::min(first + kArity, size); ++c) {
      if (entries_[c].when_ns < entries_[least].when_ns) least = c;
    }
    if (entry.when_ns <= entries_[least].when_ns) break;
    place(at, entries_[least]);
    at = least;
  }
  place(at, entry);
}

void TimerHeap::publish() {
  // seq_cst: an M that goes idle reads it after its fence, see rt/idle.cpp.
  next_ns_.store(size_.load(std::memory_order_relaxed) == 0 ? kNever : entries_[0].when_ns,
                 std::memory_order_seq_cst);
}

void TimerHeap::add(Timer& timer, std::int64_t when_ns) {
  const std::scoped_lock lock(mutex_);
  const std::size_t size = size_.load(std::memory_order_relaxed);
  if (size == capacity_) grow();
  timer.when_ns = when_ns;
  timer.heap.store(this, std::memory_order_relaxed);
  size_.store(size + 1, std::memory_order_relaxed);
  sift_up(size, Entry{when_ns, &timer});
  if (timer.index == 0) publish();
}

void TimerHeap::remove_at(std::size_t at) {
  entries_[at].timer->heap.store(nullptr, std::memory_order_relaxed);
  const std::size_t last = size_.load(std::memory_order_relaxed) - 1;
  size_.store(last, std::memory_order_relaxed);
  if (at == last) return;
  const Entry moved = entries_[last];
  if (at > 0 && moved.when_ns < entries_[(at - 1) / kArity].when_ns) {
    sift_up(at, moved);
  } else {
    sift_down(at, moved);
  }
}

bool TimerHeap::move(Timer& timer, std::int64_t when_ns) {
  const std::scoped_lock lock(mutex_);
  if (timer.heap.load(std::memory_order_relaxed) != this) return false;
  const std::size_t at = timer.index;
  const bool earlier = when_ns < timer.when_ns;
  timer.when_ns = when_ns;
  if (earlier) {
    sift_up(at, Entry{when_ns, &timer});
  } else {
    sift_down(at, Entry{when_ns, &timer});
  }
  if (at == 0 || timer.index == 0) publish();
  return true;
}

bool TimerHeap::remove(Timer& timer) {
  const std::scoped_lock lock(mutex_);
  if (timer.heap.load(std::memory_order_relaxed) != this) return false;
  const std::size_t at = timer.index;
  remove_at(at);
  if (at == 0) publish();
  return true;
}

std::size_t TimerHeap::run_due(std::int64_t now_ns) {
  std::size_t fired = 0;
  while (next_ns() <= now_ns) {
    Timer* timer = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      if (size_.load(std::memory_order_relaxed) == 0 || entries_[0].when_ns > now_ns) break;
      timer = entries_[0].timer;
      remove_at(0);
      publish();
    }
    timer->function(*timer);
    ++fired;
  }
  return fired;
}

}  // namespace tuza::rt
