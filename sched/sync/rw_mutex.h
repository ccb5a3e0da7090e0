// Public header, part of <tuza/sync.h>.
//
// RWMutex: a lock for many readers or one writer.
//
//     tuza::RWMutex mutex;
//     { const std::shared_lock lock(mutex); return table.at(key); }
//     { const std::unique_lock lock(mutex); table[key] = value; }
//
// A waiting writer keeps new readers out, so readers cannot starve it. Readers that waited while a writer
// wrote go before the next writer, so writers cannot starve readers. Hence a goroutine must not lock for
// reading what it has already locked: if a writer comes in between, the writer waits for the goroutine, and
// the goroutine for the writer. Writers are as fair among each other as with Mutex.
//
// Ordering: everything done before unlock() is visible after the next lock() and lock_shared(). Everything
// done before unlock_shared() is visible after the next lock().
// Lifetime: as for Mutex; may be destroyed as soon as nobody holds it or waits for it.
// Either lock may be held across parking calls, and released by another goroutine or thread.
//
// Thread-safe; any thread, inside and outside tuza::run. lock() and lock_shared() park the goroutine (a
// thread blocks) if they have to wait; the others never park. A reader that need not wait costs one atomic
// operation to enter and one to leave, all on the same word: readers on many cores at once contend for its
// cache line.
//
// Source: Go's sync.RWMutex, a Mutex for writers in front of a gate for one writer and many readers.
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/wait.h>
#include <tuza/sched/sync/mutex.h>

#include <atomic>
#include <cstdint>

namespace tuza {

class TUZA_CAPABILITY("RWMutex") RWMutex {
 public:
  RWMutex() = default;
  RWMutex(const RWMutex&) = delete;
  RWMutex& operator=(const RWMutex&) = delete;
  ~RWMutex();

  // -- For writers.

  // Parks if it has to wait.
  void lock() TUZA_ACQUIRE() TUZA_NO_THREAD_SAFETY_ANALYSIS { (void)lock_until(rt::Until{}); }
  // Returns the context's cause if the context ends first, or has already ended. Readers that waited for
  // this writer continue then. Parks.
  [[nodiscard]] Result<void> lock(const Context& context);
  [[nodiscard]] bool try_lock() TUZA_TRY_ACQUIRE(true);
  // Aborts if the mutex is not locked for writing. Does not park.
  void unlock() TUZA_RELEASE();

  // -- For readers.

  // Parks if it has to wait.
  void lock_shared() TUZA_ACQUIRE_SHARED() TUZA_NO_THREAD_SAFETY_ANALYSIS {
    if (!try_lock_shared()) (void)lock_shared_slow(rt::Until{});
  }
  // Returns the context's cause if the context ends first, or has already ended. Parks.
  [[nodiscard]] Result<void> lock_shared(const Context& context);
  // Also false while a writer waits.
  [[nodiscard]] bool try_lock_shared() TUZA_TRY_ACQUIRE_SHARED(true) {
    std::uint64_t seen = gate_.load(std::memory_order_relaxed);
    while ((seen & (kWriter | kWriterWaits)) == 0) {
      if (gate_.compare_exchange_weak(seen, seen + kReader, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  // Aborts if the mutex is not locked for reading. Does not park.
  void unlock_shared() TUZA_RELEASE_SHARED() {
    std::uint64_t seen = gate_.load(std::memory_order_relaxed);
    while (seen >= 2 * kReader || (seen >= kReader && (seen & kWriterWaits) == 0)) {
      // release: a writer may now overwrite the data that this reader has read
      if (gate_.compare_exchange_weak(seen, seen - kReader, std::memory_order_release,
                                      std::memory_order_relaxed)) {
        return;
      }
    }
    unlock_shared_slow();
  }

 private:
  friend struct MutexInspector;  // tests

  //   63      3        2             1          0
  //  | readers | ReadersWait | WriterWaits | Writer |       the gate
  //
  // Writer       a writer is inside; there are no readers then.
  // WriterWaits  a writer waits at the gate: new readers queue, and the last reader lets the writer in.
  // ReadersWait  readers_ is not empty; set only while one of the other two is set.
  // Both Waits bits change under lock_ only. While one of them is set, a thread that lets another in holds
  // lock_.
  static constexpr std::uint64_t kWriter = 1;
  static constexpr std::uint64_t kWriterWaits = 2;
  static constexpr std::uint64_t kReadersWait = 4;
  static constexpr std::uint64_t kReader = 8;

  bool lock_until(const rt::Until& until);
  bool enter_gate(const rt::Until& until);
  bool queue_writer(rt::Waiter& place);
  void writer_gives_up(rt::Waiter& place);
  void writer_never_enters(rt::Waiter& place);
  void leave_gate();
  bool lock_shared_slow(const rt::Until& until);
  bool queue_reader(rt::Waiter& place);
  void reader_gives_up(rt::Waiter& place);
  void unlock_shared_slow();

  Mutex writers_;  // held by the writer that is inside or at the gate; the other writers wait here
  std::atomic<std::uint64_t> gate_{0};
  rt::SpinLock lock_;
  rt::WaitQueue writer_ TUZA_GUARDED_BY(lock_);  // at most one
  rt::WaitQueue readers_ TUZA_GUARDED_BY(lock_);
};

}  // namespace tuza
