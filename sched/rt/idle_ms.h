// The Ms that wait for something to do, and the thread that makes new ones.
//
// Idle Ms form a stack: the one that slept last is the warmest. An M sleeps on its own note; whoever takes
// it off the list (pop) tells it what to do and wakes it.
//
// Creating a thread allocates, and may wait for locks of malloc that a goroutine without a P holds,
// so nobody who has work to do ever creates one: a dedicated thread does, ahead of need. It
// keeps kSpare Ms idle. When the system refuses a thread, it says so once a second at most and goes on
// trying; the Ms that exist do the work meanwhile.
//
// Threads end in two cases: a goroutine exited while it was locked to its thread, and spoiled it; or a storm
// is over, and more Ms have been idle for a whole second than sysmon keeps. The Ms are used again.
//
// Thread-safe.
#pragma once

#include <pthread.h>
#include <tuza/sched/log.h>
#include <tuza/sched/raw_mutex.h>
#include <tuza/sched/rt/m.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class IdleMs {
 public:
  void push(M* m);
  // The warmest idle M, or null. The caller must wake it.
  M* pop();
  // The one that has slept longest, or null. The caller must wake it.
  M* pop_coldest();
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
  static constexpr std::uint32_t kSpare = 8;

  enum class Request : std::uint32_t {
    kRefill = 1,  // see that kSpare Ms are idle
    kRunOne = 2,  // there is work and an idle P but no idle M: bring an M that looks for work
  };
  // Never waits, and never loses a request.
  void request(Request what) {
    const auto bit = static_cast<std::uint32_t>(what);
    if ((requests_.fetch_or(bit, std::memory_order_acq_rel) & bit) == 0) note_.wake();
  }

  // A new M has come so far that it is either idle or at work.
  void m_has_started() { starting_.fetch_sub(1, std::memory_order_relaxed); }

  void start(Sched& sched);
  void stop();

 private:
  static void* thread_main(void* sched);
  void run(Sched& sched);
  bool make_one(Sched& sched, bool needed);

  std::atomic<std::uint32_t> requests_{0};
  std::atomic<std::uint32_t> starting_{0};  // made, but neither idle nor at work yet
  std::atomic<bool> stopping_{false};
  Note note_;
  LogLimiter refused_;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace tuza::rt
