// The lane: goroutines that run without a P, on their own threads. It decides which of them may use a core,
// and in which order.
//
// Sysmon has taken their Ps because they held them for too long (rt/slice/handoff.h), or they are in a
// blocking call that was known to be long. Most wait in the kernel and cost nothing. The lane leaves these
// alone, so that none of their system calls is interrupted (except in a thundering herd, below). Many that
// compute would leave no core for the Ms with a P. So only a few more than there are Ps compute at once; the
// surplus is suspended wherever it is in its code (rt/slice/preempt_signal.h). Those few more matter for
// throughput: a suspended thread that holds the lock of malloc or of a stream keeps others waiting, and with
// a few more computing threads a holder is seldom suspended. While goroutines wait for a P only as many
// compute as there are Ps, or the goroutines with a P would get too small a share of the cores.
//
// Suspended threads wait in a queue. When the lane has room, or a computing thread has used its quantum
// (kQuantumNs of CPU time), the first of the queue is resumed. It does not get a P: Ps are for goroutines that
// respond.
//
// A goroutine may lose its P by bad luck: the kernel gave its core to another thread, or a page had to be
// read. It has microseconds to go, but behind a thousand computing threads it would be resumed only after
// many seconds. So no thread is stopped, or given long kernel slices, before it has used kGraceNs of CPU
// without a P. Threads that have used less than kYoungNs wait in a queue of their own, which is served first,
// with a short quantum: after one, a thread is no longer young. Every eighth resume serves the other queues
// nevertheless.
//
// A thread that was seen waiting in the kernel may use locks. It may hold one if it was stopped in the middle
// of its code, rather than on return from a futex wait, where a thread has just woken to try for a lock. Such
// suspects also wait in a queue of their own, ahead of the others, until they have computed for a whole
// quantum. Every eighth resume serves a suspect even while young threads wait.
//
// If nobody computes, though some threads are suspended, all others probably wait for a lock held by the
// thread that was stopped last in its own code: it is resumed first. (Only every other time; and at most one
// thread per P is resumed, not as many as there is room for.) In queue order it would come after all others,
// each of which would run, wait for the lock, and no longer be suspendable. A thousand goroutines that
// printed to one stream then woke each other and all wanted a core at once; neither the Ms nor sysmon got
// more than a thousandth of one, and `/` was a quarter of a second late.
//
// In a thundering herd that waits for the disk, threads beyond twice the number that may compute are asked to
// stop while they wait. The signal does not disturb the disk read; they stop when it has ended, instead of
// all running at once. This applies only to threads that have used more than kYoungNs without a P: an
// occasional read is not delayed.
//
// A thread computes if its CPU clock says that it used 5 % of the time since the last scan, or if /proc says
// that it runs or waits for a core: with a hundred computing threads on two cores, most use no CPU for long
// stretches. For a thread that waited, and has used no CPU since, /proc is read only at every fourth scan,
// and for at most a few dozen threads per scan. If there is room for all, the same applies to threads that
// computed. Just before a computing thread is sent a signal, /proc must always confirm that it computes: the
// signal would interrupt a waiting system call.
//
// Owner: sysmon, except for arrive(). The M and sysmon share only M::taken, M::suspend with
// M::stopped_in_code, and the list of arrivals.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/slice/lane_room.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct Sched;

class Lane {
 public:
  Lane() = default;
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Call before any M arrives.
  void prepare();

  // From now on, `m` runs a goroutine without a P. Any thread. Does not block.
  void arrive(M* m);

  // Scans all threads in the lane: counts, suspends, resumes. At most once every kScanIntervalNs; more frequent
  // calls return at once.
  void scan(Sched& sched, std::int64_t now);
  // Resumes all suspended threads; none is suspended after that. Called at the end of the runtime: the
  // threads that shut it down need what suspended threads hold (malloc's lock). The threads get short kernel
  // slices: with long ones, a round of a thousand took ten seconds, for each kernel lock that one of them held.
  void release_all();

  // Nothing to do for now: no thread is suspended, asked to stop or to be reported, and either the lane is harmless or all
  // threads here wait in the kernel, as of the last scan.
  [[nodiscard]] bool waits(const Sched& sched) const;
  // Too few threads are here to do harm, even if all of them compute.
  [[nodiscard]] bool harmless(const Sched& sched) const;

  // For reports. Any thread.
  struct Counts {
    std::uint32_t seated;     // threads that run without a P or are suspended
    std::uint32_t burning;    // threads that compute
    std::uint32_t suspended;  // threads that are stopped
    std::uint64_t arrived;    // so far
    std::uint64_t signals;    // sent so far
  };
  [[nodiscard]] Counts counts() const;
  // How many threads lost their P recently outside marked calls, or compute.
  [[nodiscard]] std::uint32_t stalled() const { return stalled_.load(std::memory_order_relaxed); }

  static constexpr std::int64_t kScanIntervalNs = 2'000'000;
  static constexpr std::int64_t kQuantumNs = 40'000'000;
  static constexpr std::int64_t kYoungQuantumNs = 2'000'000;  // while young threads wait
  static constexpr std::int64_t kGraceNs = 250'000;
  static constexpr std::int64_t kYoungNs = 2'000'000;

 private:
  // Suspended threads, in the order in which they will be resumed.
  struct Queue {
    M* first = nullptr;
    M* last = nullptr;
    std::uint32_t size = 0;
    void push(M* m);
    M* pop();
    void remove(M* m);
  };

  void help_fork(Sched& sched, std::int32_t forking_thread, std::int64_t now);
  void resume(M& m, std::int64_t now);
  void resume_all(std::int64_t now);
  void seat_arrivals(std::int64_t now);
  void clear_seats();
  bool scan_seat(Sched& sched, M& m, bool exactly, std::int64_t now);
  std::uint32_t scan_seats(Sched& sched, std::int64_t now);
  void suspend_surplus(Sched& sched, std::uint32_t burning, std::int64_t now);
  void suspend_herd(Sched& sched, std::int64_t now);
  bool ask(Sched& sched, M& m, std::int64_t now);
  bool send(Sched& sched, M& m, std::int64_t now);
  bool resume_next(std::int64_t now, bool all_wait);
  void unseat(std::size_t index);
  Queue& queue_for(M& m);
  M* next_to_resume();
  M* latest_in_code();
  [[nodiscard]] std::uint32_t queued() const { return young_.size + suspects_.size + others_.size; }

  std::atomic<M*> arrivals_{nullptr};
  M** seats_ = nullptr;  // the threads that are not suspended
  std::size_t seats_size_ = 0;
  std::size_t first_seat_ = 0;  // where the next scan starts
  std::size_t first_of_herd_ = 0;
  std::int64_t herd_scan_at_ns_ = 0;
  std::size_t first_asked_ = 0;  // where the next search for threads to stop starts
  std::uint32_t probes_ = 0;     // remaining /proc reads in this scan
  LaneRoom room_;
  Queue young_, suspects_, others_;
  std::uint32_t resumes_ = 0;
  std::uint64_t stops_ = 0;
  std::int64_t scanned_ns_ = 0;
  std::uint32_t unserved_ = 0;       // computing threads that have had no core since the previous scan
  bool all_wait_ = false;            // no thread computes, not even one that was asked to stop
  bool latest_next_ = false;         // resume_next() has taken the thread that was stopped last
  std::uint32_t settled_ = 0;        // seated threads that are in marked calls or have waited for long
  std::uint32_t queued_marked_ = 0;  // suspended threads that are in marked calls
  std::atomic<std::uint32_t> seated_{0}, burning_{0}, suspended_{0}, stalled_{0};
  std::atomic<std::uint64_t> arrived_{0}, signals_{0};
};

}  // namespace tuza::rt
