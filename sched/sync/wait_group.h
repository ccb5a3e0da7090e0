// WaitGroup: waits for goroutines to finish.
//
//     tuza::WaitGroup group;
//     for (Shard& shard : shards) group.go([&shard] { shard.compact(); });
//     group.wait();
//
// Ordering: what a goroutine did before done() is visible after the wait() that it released.
// Lifetime: may be destroyed as soon as every wait() has returned, even while the last done() is still
// returning: done() does not touch the group after it has let the waiters go.
// Reuse: a new round may begin when all waits of the last one have returned.
//
// Thread-safe. add() and done() never park and may be called from any thread; wait() parks the goroutine.
#pragma once

#include <tuza/sched/g_list.h>
#include <tuza/sched/go.h>
#include <tuza/sched/raw_mutex.h>

#include <atomic>
#include <cstdint>
#include <source_location>
#include <utility>

namespace tuza {

class WaitGroup {
 public:
  WaitGroup() = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;
  ~WaitGroup();

  // Adds `delta`, which may be negative, to the counter. Aborts if the counter goes below zero.
  void add(std::int32_t delta);
  void done() { add(-1); }

  // Returns when the counter is zero. Parks.
  void wait();

  // add(1), go(function), and done() when it ends, by goexit() too.
  template <class F>
  void go(F&& function, const std::source_location& where = std::source_location::current()) {
    add(1);
    tuza::go(
        [this, function = std::forward<F>(function)]() mutable {
          struct Done {
            WaitGroup* group;
            ~Done() { group->done(); }
          } done{this};
          function();
        },
        where);
  }

 private:
  void release_waiters();
  static bool commit_wait(rt::G* g, void* self);

  //   63          32 31            0
  //  |   counter    |   waiters    |      one word, so that done() learns with its one write whether it
  //                                       is the last and whether anybody waits
  std::atomic<std::uint64_t> state_{0};
  rt::RawMutex mutex_;
  rt::GList waiters_;  // guarded by mutex_
};

}  // namespace tuza
