// The idle Ms, and the maker of Ms: a thread that creates new ones.
//
// Idle Ms form a stack: the M that went to sleep last is the warmest, and Ms that have never run anything lie
// at the bottom. An M sleeps on its own note. The thread that takes it off the list (pop) tells it what to do
// and wakes it.
//
// Creating a thread allocates, and so waits for the lock of a malloc arena. A hundred allocating goroutines
// can keep a thread from that lock for half a second, if there are fewer arenas than Ms
// (rt/idle/malloc_arenas.h). A thread with other work to do therefore never creates one: a dedicated thread
// does, ahead of need. It keeps kSpareMin Ms idle, and more while goroutines do not come back: each handoff
// adds kSparePerHandoff, up to one for each waiting goroutine, which may behave the same way. A second
// without demand leaves a quarter. While the maker is stuck in malloc, Ms that have never run a goroutine
// take over, because a thread without an arena is given, at its first allocation, an arena whose lock is
// free. Each of these Ms makes one other M, which makes the next. When the system refuses a thread, the maker
// logs so, at most once per second, and keeps trying while work needs the M; meanwhile the existing Ms do the work.
//
// Ms that are made ahead of need must not take the last threads that the system allows. None are made while the program
// sets itself up, that is until the main goroutine waits for the first time (or for a second): threads of its own come
// first. When the system refuses a spare one, kRoom others end. For a minute Ms are made only for work that waits, and end
// again.
//
// Threads end in two cases. First, a goroutine exited while it was locked to its thread, and so spoiled the
// thread. Second, a storm is over, and more Ms have been idle for a whole second than sysmon keeps. The maker
// joins the threads; the Ms are reused. A thread that has forked ends with the runtime only (rt/base/fork.h).
//
// Thread-safe.
#pragma once

#include <pthread.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/m.h>

#include <atomic>
#include <cstdint>
#include <limits>

namespace tuza::rt {

class IdleMs {
 public:
  void push(M* m);
  // Takes the warmest idle M, or returns null. The caller must wake the M.
  M* pop();
  // Takes an M that has never run a goroutine, else the M that has slept longest; null if none is idle. The
  // caller must wake the M.
  M* pop_coldest();
  // Takes an M that has never run a goroutine, or returns null. The caller must wake the M.
  M* pop_fresh();
  // The smallest number of idle Ms since the last call.
  std::uint32_t take_low_water();
  // Takes `m` itself off the list, after its sleep has timed out. False: another thread has popped it, and
  // the wake is in transit.
  bool remove(M* m);
  [[nodiscard]] std::uint32_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  void unlink(M* m) TUZA_REQUIRES(mutex_);  // with mutex_ held

  RawMutex mutex_;
  M* top_ TUZA_GUARDED_BY(mutex_) = nullptr;
  M* bottom_ TUZA_GUARDED_BY(mutex_) = nullptr;
  std::uint32_t low_water_ TUZA_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint32_t> size_{0};
};

// The maker of Ms: a dedicated thread.
class MMaker {
 public:
  static constexpr std::uint32_t kSpareMin = 8;
  static constexpr std::uint32_t kSpareMax = 256;
  static constexpr std::uint32_t kSparePerHandoff = 16;
  static constexpr std::uint32_t kNoMax = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kRoom = 4;  // threads that are left to the program at the system's limit

  enum class Request : std::uint32_t {
    kRefill = 1,  // make sure that the wanted number of Ms is idle
    kRunOne = 2,  // there is work and an idle P but no idle M: provide an M that looks for work
    kReport = 4,  // log the findings of sysmon
    kJoin = 8,    // the thread of an M ends
    kLook = 16,   // provide an M that looks around, also where there is no work: it may find a deadlock
  };
  // Never waits, and never loses a request.
  void request(Request what) {
    const auto bit = static_cast<std::uint32_t>(what);
    if ((requests_.fetch_or(bit, std::memory_order_acq_rel) & bit) == 0) note_.wake();
  }

  // Call after taking an M, with the number of Ms still idle, and of all.
  void taken(std::uint32_t idle, std::uint32_t live) {
    if (idle < spare() && live < ahead_max_.load(std::memory_order_relaxed)) request(Request::kRefill);
  }

  // Sysmon only: a P was taken from a goroutine that does not come back, and `waiting` other goroutines wait.
  void expect(std::uint32_t waiting);

  // Called by an M that is fresh and has no P: creates another M if the maker is stuck and another M is still
  // wanted.
  void help(Sched& sched);
  // Called by sysmon in every tick: finds the first M that helps.
  void find_help(Sched& sched, std::int64_t now);

  // The number of Ms that the maker currently keeps idle, if it may.
  [[nodiscard]] std::uint32_t spare() const { return spare_.load(std::memory_order_relaxed); }
  // Called by sysmon once per second: reduces the spares if there was no demand, and keeps the room that the system's limit
  // takes.
  void forget_demand(Sched& sched);
  // Called by an M that goes idle and by sysmon when it takes a P.
  void end_set_up(const Sched& sched) {
    if (setting_up_.load(std::memory_order_relaxed)) [[unlikely]]
      end_set_up_if_main_waits(sched);
  }
  // Called by an M that is about to sleep and that need not: whether its thread ends instead, to leave room.
  bool ends_surplus(const Sched& sched);
  // A new M has become idle, or has taken a goroutine. Release: see one_suffices_and_comes().
  void m_has_started() { starting_.fetch_sub(1, std::memory_order_release); }

  void start(Sched& sched);
  void stop();

 private:
  static void* thread_main(void* sched);
  void run(Sched& sched);
  bool make_one(Sched& sched);
  bool bring_one(Sched& sched, bool only_for_work);
  int start_one(Sched& sched);
  [[nodiscard]] bool is_stuck(std::int64_t now) const;
  [[nodiscard]] bool wants_more(const Sched& sched) const;
  void refill(Sched& sched);
  void leave_room(Sched& sched);
  void end_those_above_max(Sched& sched);
  [[nodiscard]] static bool work_waits(const Sched& sched);
  [[nodiscard]] static bool lacks_one(const Sched& sched);
  [[nodiscard]] bool one_suffices_and_comes() const;
  void end_set_up_if_main_waits(const Sched& sched);
  void allow_spares();

  std::atomic<std::uint32_t> requests_{0};
  std::atomic<std::uint32_t> starting_{0};  // made, but neither idle nor busy yet
  std::atomic<std::uint32_t> spare_{kSpareMin};
  // While there are this many Ms, none are made ahead. Relaxed: at worst an M is made too many or too late.
  std::atomic<std::uint32_t> ahead_max_{0};
  std::atomic<bool> setting_up_{true};
  std::atomic<std::uint32_t> surplus_{0};       // Ms that are still to end, to leave room
  std::atomic<std::uint32_t> seconds_full_{0};  // since the system has refused a spare M; owner: sysmon
  std::atomic<std::uint32_t> made_{0};          // since the last forget_demand()
  std::atomic<bool> any_made_{false};
  std::atomic<bool> helping_{false};                // an M creates one in the maker's place
  std::atomic<std::int64_t> creating_since_ns_{0};  // start of the maker's current thread creation, or 0
  std::atomic<bool> stopping_{false};
  Note note_;
  LogLimiter refused_;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace tuza::rt
