// The Ms that wait for something to do, and the thread that makes new ones.
//
// Idle Ms form a stack: the one that slept last is the warmest, those that have never run anything lie at
// the bottom. An M sleeps on its own note; whoever takes it off the list (pop) tells it what to do and wakes
// it.
//
// Creating a thread allocates, and waits for the lock of an arena of malloc's, which a hundred goroutines
// that allocate can keep from it for half a second (where there are fewer arenas than Ms:
// rt/idle/malloc_arenas.h). So nobody who has work to do ever creates one: a dedicated thread does, ahead of need.
// It keeps kSpareMin Ms idle, and more while goroutines do not come back: each handoff adds kSparePerHandoff,
// up to one for every goroutine that waits, who may be of the same kind. A second without demand leaves a
// quarter. While the maker is stuck in malloc, Ms that have never run a goroutine take over: a thread without
// an arena is given one that nobody holds, at its first allocation. Each of them makes one other M, which
// makes the next. When the system refuses a thread, the maker says so once a second at most and goes on
// trying; the Ms that exist do the work meanwhile.
//
// Threads end in two cases: a goroutine exited while it was locked to its thread, and spoiled it; or a storm
// is over, and more Ms have been idle for a whole second than sysmon keeps. The maker joins them; the Ms are used
// again. A thread that has forked ends with the runtime only (rt/base/fork.h).
//
// Thread-safe.
#pragma once

#include <pthread.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/m.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class IdleMs {
 public:
  void push(M* m);
  // The warmest idle M, or null. The caller must wake it.
  M* pop();
  // One that has never run a goroutine, else the one that has slept longest; or null. The caller must wake
  // it.
  M* pop_coldest();
  // One that has never run a goroutine, or null. The caller must wake it.
  M* pop_fresh();
  // How many were idle at any time since the last call.
  std::uint32_t take_low_water();
  // Takes `m` itself off the list, after its sleep timed out. False: somebody has popped it, and the wake
  // is on its way.
  bool remove(M* m);
  [[nodiscard]] std::uint32_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  void unlink(M* m);  // with mutex_ held

  RawMutex mutex_;
  M* top_ = nullptr;             // guarded by mutex_
  M* bottom_ = nullptr;          // guarded by mutex_
  std::uint32_t low_water_ = 0;  // guarded by mutex_
  std::atomic<std::uint32_t> size_{0};
};

// The maker of Ms: a thread of its own.
class MMaker {
 public:
  static constexpr std::uint32_t kSpareMin = 8;
  static constexpr std::uint32_t kSpareMax = 256;
  static constexpr std::uint32_t kSparePerHandoff = 16;

  enum class Request : std::uint32_t {
    kRefill = 1,  // see that as many Ms as are wanted are idle
    kRunOne = 2,  // there is work and an idle P but no idle M: bring an M that looks for work
    kReport = 4,  // log what sysmon has found
    kJoin = 8,    // the thread of an M ends
  };
  // Never waits, and never loses a request.
  void request(Request what) {
    const auto bit = static_cast<std::uint32_t>(what);
    if ((requests_.fetch_or(bit, std::memory_order_acq_rel) & bit) == 0) note_.wake();
  }

  // After an M was taken that leaves `idle` others idle.
  void taken(std::uint32_t idle) {
    if (idle < spare_.load(std::memory_order_relaxed)) request(Request::kRefill);
  }

  // A P was taken from a goroutine that does not come back, and `waiting` others wait to run. Sysmon only.
  void expect(std::uint32_t waiting);

  // By an M, fresh and without a P: creates another one if the maker is stuck and that is still wanted.
  void help(Sched& sched);
  // Sysmon, every tick: finds the M to begin with that.
  void find_help(Sched& sched, std::int64_t now);

  // How many Ms it keeps idle at present.
  [[nodiscard]] std::uint32_t spare() const { return spare_.load(std::memory_order_relaxed); }
  // Once a second, by sysmon: fewer spares if there was no demand.
  void forget_demand();
  // A new M has come so far that it is either idle or at work.
  void m_has_started() { starting_.fetch_sub(1, std::memory_order_relaxed); }

  void start(Sched& sched);
  void stop();

 private:
  static void* thread_main(void* sched);
  void run(Sched& sched);
  bool make_one(Sched& sched);
  bool bring_one(Sched& sched);
  bool start_one(Sched& sched);
  [[nodiscard]] bool is_stuck(std::int64_t now) const;
  [[nodiscard]] bool wants_more(const Sched& sched) const;
  bool refill(Sched& sched);

  std::atomic<std::uint32_t> requests_{0};
  std::atomic<std::uint32_t> starting_{0};  // made, but neither idle nor at work yet
  std::atomic<std::uint32_t> spare_{kSpareMin};
  std::atomic<std::uint32_t> made_{0};  // since the last forget_demand()
  std::atomic<bool> any_made_{false};
  std::atomic<bool> helping_{false};                // an M creates one in its place
  std::atomic<std::int64_t> creating_since_ns_{0};  // since when it has been creating the same thread, or 0
  std::atomic<bool> stopping_{false};
  Note note_;
  LogLimiter refused_;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace tuza::rt
