#include <tuza/sched/rt/queue/timer_heap.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/mapping.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace tuza::rt {
namespace {

constexpr std::size_t kArity = 4;
constexpr std::size_t kFirstTimers = 256;  // one page
// The children of entry 0 begin at index 1, the first of four; that entry must start a cache line.
constexpr std::size_t kUnused = kArity - 1;
constexpr int kSlackShift = 20;  // a millisecond

std::uint32_t slack_of(std::int64_t ns) {
  const std::int64_t units = ns >> kSlackShift;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(units, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

TimerHeap::~TimerHeap() { unmap_pages(pages_, capacity_ * sizeof(Entry)); }

void TimerHeap::disarm_all() {
  const LockGuard lock(lock_);
  const std::size_t size = size_.exchange(0, std::memory_order_relaxed);
  for (const Entry& entry : std::span(entries_, size)) {
    entry.timer->index = Timer::kDisarmed;
    entry.timer->heap.store(nullptr, std::memory_order_release);
  }
  publish();
}

void TimerHeap::move_all(TimerHeap& to, std::int64_t shift_ns) {
  const LockBoth both(lock_, to.lock_);
  const std::size_t size = size_.exchange(0, std::memory_order_relaxed);
  for (const Entry& entry : std::span(entries_, size)) {
    const std::int64_t when = entry.timer->when_ns;
    to.insert(*entry.timer, shift_ns > 0 && when >= kNever - 1 - shift_ns ? kNever - 1 : when + shift_ns);
  }
  publish();
  to.publish();
}

void TimerHeap::grow() {
  const std::size_t capacity = capacity_ == 0 ? kFirstTimers : capacity_ * 2;
  auto* pages = static_cast<Entry*>(map_pages(capacity * sizeof(Entry)));
  if (pages == nullptr) fatal("out of memory for timers");
  if (capacity_ != 0) std::memcpy(pages, pages_, capacity_ * sizeof(Entry));
  unmap_pages(pages_, capacity_ * sizeof(Entry));
  pages_ = pages;
  entries_ = pages + kUnused;
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
  // seq_cst: an M that goes idle reads next_ns_ after its fence (rt/idle/idle.cpp).
  next_ns_.store(size_.load(std::memory_order_relaxed) == 0 ? kNever : entries_[0].when_ns,
                 std::memory_order_seq_cst);
}

void TimerHeap::insert(Timer& timer, std::int64_t when_ns) {
  when_ns = std::min(when_ns, kNever - 1);
  const std::size_t size = size_.load(std::memory_order_relaxed);
  if (size + kUnused >= capacity_) grow();
  timer.when_ns = when_ns;
  timer.slack = 0;
  timer.heap.store(this, std::memory_order_relaxed);
  size_.store(size + 1, std::memory_order_relaxed);
  sift_up(size, Entry{when_ns, &timer});
}

void TimerHeap::add(Timer& timer, std::int64_t when_ns) {
  const LockGuard lock(lock_);
  insert(timer, when_ns);
  if (timer.index == 0) publish();
}

void TimerHeap::remove_at(std::size_t at) {
  // release: a thread that sees that the timer is not armed reads `index` (timer_disarmed).
  entries_[at].timer->heap.store(nullptr, std::memory_order_release);
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
  when_ns = std::min(when_ns, kNever - 1);
  const LockGuard lock(lock_);
  if (timer.heap.load(std::memory_order_relaxed) != this) return false;
  const std::size_t at = timer.index;
  const std::int64_t bound = timer.when_ns - (std::int64_t{timer.slack} << kSlackShift);
  timer.when_ns = when_ns;
  if (when_ns >= bound) {  // the entry is at or before `bound`, wherever that is
    timer.slack = slack_of(when_ns - bound);
  } else if (when_ns >= entries_[at].when_ns) {
    timer.slack = slack_of(when_ns - entries_[at].when_ns);
  } else {
    timer.slack = 0;
    sift_up(at, Entry{when_ns, &timer});
    if (timer.index == 0) publish();
  }
  return true;
}

bool TimerHeap::remove(Timer& timer) {
  const LockGuard lock(lock_);
  if (timer.heap.load(std::memory_order_relaxed) != this) return false;
  const std::size_t at = timer.index;
  remove_at(at);
  if (at == 0) publish();
  return true;
}

Timer* TimerHeap::take_due(std::int64_t now_ns) {
  const LockGuard lock(lock_);
  if (size_.load(std::memory_order_relaxed) == 0 || entries_[0].when_ns > now_ns) return nullptr;
  Timer* timer = entries_[0].timer;
  if (timer->when_ns > entries_[0].when_ns) {  // the timer was postponed
    timer->slack = 0;
    sift_down(0, Entry{timer->when_ns, timer});
    timer = nullptr;
  } else {
    remove_at(0);
  }
  publish();
  return timer;
}

std::size_t TimerHeap::run_due(std::int64_t now_ns) {
  std::size_t fired = 0;
  while (next_ns() <= now_ns) {
    Timer* timer = take_due(now_ns);
    if (timer == nullptr) continue;
    timer->function(*timer);
    ++fired;
  }
  return fired;
}

}  // namespace tuza::rt
