#include <tuza/sched/sync/rw_mutex.h>

#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>
#include <tuza/sched/sync/detail/wake_list.h>
#include <tuza/sched/sync/detail/within.h>

namespace tuza {

RWMutex::~RWMutex() {
  if ((gate_.load(std::memory_order_relaxed) & (kWriterWaits | kReadersWait)) != 0) {
    rt::check_nobody_waits("RWMutex", lock_, writer_, readers_);
  }
  writers_.check_nobody_waits("RWMutex");
}

// -- Writers.

// The lock is two words, which the analysis cannot know.
bool RWMutex::try_lock() TUZA_NO_THREAD_SAFETY_ANALYSIS {
  if (!writers_.try_lock()) return false;
  std::uint64_t free = 0;
  if (gate_.compare_exchange_strong(free, kWriter, std::memory_order_acquire, std::memory_order_relaxed)) {
    return true;
  }
  writers_.unlock();
  return false;
}

bool RWMutex::lock_until(const rt::Until& until) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  if (!writers_.try_lock() && !writers_.lock_slow(WaitReason::kRWMutexWrite, until)) return false;
  // The previous writer releases writers_ first and the gate last, so it may be about to release the gate.
  // Read before trying to write: an attempt would take away the cache line that the previous writer is about
  // to write.
  constexpr int kPauses = 30;
  for (int i = 0; i < kPauses; ++i) {
    std::uint64_t seen = gate_.load(std::memory_order_relaxed);
    if (seen == 0 &&
        gate_.compare_exchange_strong(seen, kWriter, std::memory_order_acquire, std::memory_order_relaxed)) {
      return true;
    }
    if (seen != kWriter) break;
    rt::cpu_relax();
  }
  if (enter_gate(until)) return true;
  writers_.unlock();
  return false;
}

bool RWMutex::enter_gate(const rt::Until& until) {
  rt::parking_point();
  rt::Wait wait;
  rt::Waiter place(wait, rt::leave<&RWMutex::writer_never_enters>, this);
  if (!queue_writer(place) || wait.block(WaitReason::kRWMutexWrite, until) == &place) return true;
  writer_gives_up(place);
  return false;
}

// False: the gate was free, and the writer is inside.
bool RWMutex::queue_writer(rt::Waiter& place) {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds lock_
  const LockGuard lock(lock_);
  std::uint64_t seen = gate_.load(std::memory_order_relaxed);
  for (;;) {
    const bool free = (seen & kWriter) == 0 && seen < kReader;
    if (gate_.compare_exchange_weak(seen, seen | (free ? kWriter : kWriterWaits), std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
      if (!free) writer_.push_back(place);
      return !free;
    }
  }
}

// Readers that waited for this writer must not keep waiting: they enter now, unless a writer is still
// inside, which will let them in.
void RWMutex::writer_gives_up(rt::Waiter& place) {
  const rt::Enter rt;
  rt::WakeList readers;
  {
    const LockGuard lock(lock_);
    if (!place.queued) return;  // the thread that took it off the queue takes care of the readers
    writer_.remove(place);
    std::uint64_t seen = gate_.load(std::memory_order_relaxed);
    if ((seen & kWriter) == 0) {
      const std::uint64_t entering = readers.claim_all(readers_) * kReader;
      // Readers may leave at the same time, without lock_.
      while (!gate_.compare_exchange_weak(seen, (seen & ~(kWriterWaits | kReadersWait)) + entering,
                                          std::memory_order_release, std::memory_order_relaxed)) {
      }
    } else {
      gate_.fetch_and(~kWriterWaits, std::memory_order_relaxed);
    }
  }
  readers.wake_all();
}

// The writer at `place` will never continue. Not analysed: it took writers_ in lock_until().
void RWMutex::writer_never_enters(rt::Waiter& place) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  writer_gives_up(place);
  writers_.unlock();
}

// Releases writers_ first, so that the last access to the RWMutex is at the gate: a reader that is let in
// may destroy the RWMutex. Not analysed, as try_lock().
void RWMutex::unlock() TUZA_NO_THREAD_SAFETY_ANALYSIS {
  if ((gate_.load(std::memory_order_relaxed) & kWriter) == 0) {
    rt::fatal("unlock of an RWMutex that is not locked for writing");
  }
  writers_.unlock();
  std::uint64_t alone = kWriter;
  if (!gate_.compare_exchange_strong(alone, 0, std::memory_order_release, std::memory_order_relaxed)) {
    leave_gate();
  }
}

void RWMutex::leave_gate() {
  const rt::Enter rt;
  rt::WakeList next;
  for (;;) {
    {
      const LockGuard lock(lock_);
      // With kWriter set and lock_ held, nobody else changes the gate.
      const std::uint64_t seen = gate_.load(std::memory_order_relaxed);
      if (const std::size_t entering = next.claim_all(readers_); entering > 0) {
        gate_.store(entering * kReader | (seen & kWriterWaits), std::memory_order_release);
        break;
      }
      if (rt::Waiter* writer = writer_.claim_first()) {
        gate_.store(kWriter, std::memory_order_release);
        next.push_back(*writer);
        break;
      }
      gate_.store(kWriter, std::memory_order_relaxed);  // all have given up
    }
    // Not under lock_: a caller that enters now may destroy the mutex.
    std::uint64_t alone = kWriter;
    if (gate_.compare_exchange_strong(alone, 0, std::memory_order_release, std::memory_order_relaxed)) break;
  }
  next.wake_all();
}

Result<void> RWMutex::lock(const Context& context) {
  return rt::within(context, [this](const rt::Until& until) { return lock_until(until); });
}

// -- Readers.

bool RWMutex::lock_shared_slow(const rt::Until& until) {
  rt::parking_point();
  rt::Wait wait;
  rt::Waiter place(wait, rt::leave<&RWMutex::reader_gives_up>, this);
  if (!queue_reader(place) || wait.block(WaitReason::kRWMutexRead, until) == &place) return true;
  reader_gives_up(place);
  return false;
}

// False: the reader is inside.
bool RWMutex::queue_reader(rt::Waiter& place) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  std::uint64_t seen = gate_.load(std::memory_order_relaxed);
  for (;;) {
    const bool open = (seen & (kWriter | kWriterWaits)) == 0;
    if (gate_.compare_exchange_weak(seen, open ? seen + kReader : seen | kReadersWait,
                                    std::memory_order_acquire, std::memory_order_relaxed)) {
      if (!open) readers_.push_back(place);
      return !open;
    }
  }
}

void RWMutex::reader_gives_up(rt::Waiter& place) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  if (!place.queued) return;
  readers_.remove(place);
  if (readers_.empty()) gate_.fetch_and(~kReadersWait, std::memory_order_relaxed);
}

// The last reader while a writer waits: lets the writer in while this reader is itself still counted, so
// that nobody destroys the mutex under it.
void RWMutex::unlock_shared_slow() {
  const rt::Enter rt;
  std::uint64_t seen = gate_.load(std::memory_order_relaxed);
  for (;;) {
    if (seen < kReader) rt::fatal("unlock_shared of an RWMutex that is not locked for reading");
    if (seen >= 2 * kReader || (seen & kWriterWaits) == 0) {
      if (gate_.compare_exchange_weak(seen, seen - kReader, std::memory_order_release,
                                      std::memory_order_relaxed)) {
        return;
      }
      continue;
    }
    rt::WakeList next;
    bool left = false;
    {
      const LockGuard lock(lock_);
      // Under lock_, with a writer at the gate and this reader alone, nobody else changes the gate. acquire:
      // pairs with the release of the other readers that left, so that the writer comes after them too.
      seen = gate_.load(std::memory_order_acquire);
      if (seen >= kReader && seen < 2 * kReader && (seen & kWriterWaits) != 0) {
        if (rt::Waiter* writer = writer_.claim_first()) {
          gate_.store(kWriter | (seen & kReadersWait), std::memory_order_release);
          next.push_back(*writer);
          left = true;
        } else {  // the writer has given up: the readers that waited for it join this reader
          const std::size_t entering = next.claim_all(readers_);
          gate_.store((entering + 1) * kReader, std::memory_order_release);
        }
      }
    }
    next.wake_all();
    if (left) return;
    seen = gate_.load(std::memory_order_relaxed);
  }
}

Result<void> RWMutex::lock_shared(const Context& context) {
  // Not analysed: the lock stays taken when the lambda returns true.
  return rt::within(context, [this](const rt::Until& until) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    return try_lock_shared() || lock_shared_slow(until);
  });
}

}  // namespace tuza
