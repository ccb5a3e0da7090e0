// Everything in sched that a goroutine can wait for, behind one interface: for tests of what the end of a
// runtime does to waits.
#pragma once

#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/barrier.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/cond.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/error_group.h>
#include <tuza/sched/sync/future.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/once.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/sync/scope.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/singleflight.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>
#include <tuza/sched/time/ticker.h>
#include <tuza/sched/time/timer.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

namespace tuza::testing {

class Waitable {
 public:
  virtual ~Waitable() = default;
  // Waits until it is served. Call on a goroutine; parks.
  virtual void wait() = 0;
  // Releases one waiter, if there is one. Any thread, inside and outside tuza::run, one at a time; does not
  // wait.
  virtual void serve() = 0;
};

struct WaitableKind {
  std::string name;
  std::unique_ptr<Waitable> (*make)();
  // The object serves others after a runtime that has abandoned waiters. False for an object that an
  // abandoned goroutine was working on, or acquired at the last moment: that goroutine holds it for ever.
  bool serves_again = true;
  bool serves_again_after_last_moment = true;
};

class ChanReceive : public Waitable {
 public:
  void wait() override { (void)chan_.recv(); }
  void serve() override { (void)chan_.try_send(1); }

 private:
  Chan<int> chan_;
};

class ChanReceiveWithContext : public Waitable {
 public:
  void wait() override { (void)chan_.recv(made_.ctx()); }
  void serve() override { (void)chan_.try_send("a string that is not short"); }

 private:
  CancellableContext made_ = with_cancel({});
  Chan<std::string> chan_;
};

class ChanSend : public Waitable {
 public:
  void wait() override { chan_.send("a string that is not short"); }
  void serve() override { (void)chan_.try_recv(); }

 private:
  Chan<std::string> chan_;
};

class BufferedChanSend : public Waitable {
 public:
  BufferedChanSend() { (void)chan_.try_send(1); }
  void wait() override { chan_.send(2); }
  void serve() override { (void)chan_.try_recv(); }

 private:
  Chan<int> chan_{1};
};

class SelectReceiveOrSend : public Waitable {
 public:
  void wait() override {
    select(on_recv(in_), on_send(out_, 1), on_recv(never_), on_timeout(std::chrono::hours(1), [] {}));
  }
  void serve() override {
    if (turn_ = !turn_; turn_) {
      (void)in_.try_send(1);
    } else {
      (void)out_.try_recv();
    }
  }

 private:
  Chan<int> in_, out_, never_;
  bool turn_ = false;
};

class SelectFuture : public Waitable {
 public:
  void wait() override { select(on_ready(future_), on_recv(never_)); }
  void serve() override {
    if (!std::exchange(served_, true)) promise_.set_value(1);
  }

 private:
  Promise<int> promise_;
  Future<int> future_ = promise_.future();
  Chan<int> never_;
  bool served_ = false;
};

template <bool kTimed>
class MutexWait : public Waitable {
 public:
  MutexWait() { mutex_.lock(); }
  void wait() override {
    if constexpr (kTimed) {
      if (mutex_.try_lock_for(std::chrono::hours(1))) mutex_.unlock();
    } else {
      const std::scoped_lock lock(mutex_);
    }
  }
  void serve() override {
    if (std::exchange(held_, false)) mutex_.unlock();
    held_ = mutex_.try_lock();
  }

 private:
  Mutex mutex_;
  bool held_ = true;
};

class RWMutexWrite : public Waitable {
 public:
  RWMutexWrite() { mutex_.lock_shared(); }
  void wait() override { const std::scoped_lock lock(mutex_); }
  void serve() override {
    if (std::exchange(held_, false)) mutex_.unlock_shared();
    held_ = mutex_.try_lock_shared();
  }

 private:
  RWMutex mutex_;
  bool held_ = true;
};

class RWMutexRead : public Waitable {
 public:
  RWMutexRead() { mutex_.lock(); }
  void wait() override { const std::shared_lock lock(mutex_); }
  void serve() override {
    if (std::exchange(held_, false)) mutex_.unlock();
    held_ = mutex_.try_lock();
  }

 private:
  RWMutex mutex_;
  bool held_ = true;
};

template <bool kWithContext>
class CondWait : public Waitable {
 public:
  void wait() override {
    std::unique_lock lock(mutex_);
    if constexpr (kWithContext) {
      (void)cond_.wait(made_.ctx(), lock);
    } else {
      cond_.wait(lock);
    }
  }
  void serve() override { cond_.signal(); }

 private:
  CancellableContext made_ = with_cancel({});
  Mutex mutex_;
  Cond cond_;
};

// The goroutine is in the cond's queue, and waits for another event in the lock's unlock().
class CondInUnlock : public Waitable {
 public:
  void wait() override {
    struct Lock {
      CondInUnlock& self;
      void lock() {}
      void unlock() { self.gate_.acquire(); }
    } lock{*this};
    cond_.wait(lock);
  }
  void serve() override {
    cond_.signal();
    gate_.release();
  }

 private:
  Semaphore gate_{0};
  Cond cond_;
};

class WaitGroupWait : public Waitable {
 public:
  WaitGroupWait() { group_.add(1); }
  void wait() override { group_.wait(); }
  void serve() override {
    group_.done();
    group_.add(1);
  }

 private:
  WaitGroup group_;
};

class SemaphoreAcquire : public Waitable {
 public:
  void wait() override { semaphore_.acquire(); }
  void serve() override { semaphore_.release(); }

 private:
  Semaphore semaphore_{0};
};

class LatchWait : public Waitable {
 public:
  void wait() override { latch_.wait(); }
  void serve() override {
    if (!std::exchange(served_, true)) latch_.count_down();
  }

 private:
  Latch latch_{1};
  bool served_ = false;
};

// The barrier needs more participants than ever arrive.
class BarrierWait : public Waitable {
 public:
  void wait() override { barrier_.arrive_and_wait(); }
  void serve() override {}

 private:
  Barrier barrier_{1000};
};

// The first caller runs the function, and waits in it; the others wait for the first.
class OnceCall : public Waitable {
 public:
  void wait() override {
    once_.call([this] { gate_.acquire(); });
  }
  void serve() override { gate_.release(); }

 private:
  Once once_;
  Semaphore gate_{0};
};

class SingleflightCall : public Waitable {
 public:
  void wait() override {
    (void)flights_.call(1, [this] {
      gate_.acquire();
      return 2;
    });
  }
  void serve() override { gate_.release(); }

 private:
  singleflight::Group<int, int> flights_;
  Semaphore gate_{0};
};

class FutureWait : public Waitable {
 public:
  void wait() override { future_.wait(); }
  void serve() override {
    if (!std::exchange(served_, true)) promise_.set_value("a string that is not short");
  }

 private:
  Promise<std::string> promise_;
  Future<std::string> future_ = promise_.future();
  bool served_ = false;
};

template <bool kSleeps>
class ContextEnd : public Waitable {
 public:
  void wait() override {
    const auto [child, cancel] = with_cancel(made_.ctx());
    if constexpr (kSleeps) {
      (void)sleep_for(child, std::chrono::hours(1));
    } else {
      child.wait();
    }
  }
  void serve() override { made_.cancel(); }

 private:
  CancellableContext made_ = with_cancel({});
};

// The function registered for the end of the context refers to the goroutine's stack.
class ContextFunctionOnStack : public Waitable {
 public:
  void wait() override {
    Semaphore called{0};
    const WhenDone function = when_done(made_.ctx(), [&called] { called.release(); });
    called.acquire();
  }
  void serve() override { made_.cancel(); }

 private:
  CancellableContext made_ = with_cancel({});
};

class TimerWait : public Waitable {
 public:
  void wait() override {
    while (!timer_.wait(made_.ctx())) {
    }
  }
  void serve() override {
    if (goroutine_id() != 0) timer_.reset(std::chrono::nanoseconds(0));  // inside tuza::run only
  }

 private:
  CancellableContext made_ = with_cancel({});
  Timer timer_;
};

class ErrorGroupWait : public Waitable {
 public:
  void wait() override {
    group_.go([this] { gate_.acquire(); });
    (void)group_.wait();
  }
  void serve() override { gate_.release(); }

 private:
  Semaphore gate_{0};
  ErrorGroup group_;
};

// A scope, and the group it waits for, on the goroutine's own stack.
class ScopeEnd : public Waitable {
 public:
  void wait() override {
    Scope scope;
    scope.go([this] { gate_.acquire(); });
  }
  void serve() override { gate_.release(); }

 private:
  Semaphore gate_{0};
};

template <class W>
WaitableKind waitable(std::string name, bool serves_again = true, bool after_last_moment = true) {
  return {std::move(name), [] { return std::unique_ptr<Waitable>(new W); }, serves_again,
          serves_again && after_last_moment};
}

inline std::vector<WaitableKind> waitables() {
  return {
      waitable<ChanReceive>("ChanReceive"),
      waitable<ChanReceiveWithContext>("ChanReceiveWithContext"),
      waitable<ChanSend>("ChanSend"),
      waitable<BufferedChanSend>("BufferedChanSend"),
      waitable<SelectReceiveOrSend>("SelectReceiveOrSend"),
      waitable<SelectFuture>("SelectFuture"),
      waitable<MutexWait<false>>("Mutex"),
      waitable<MutexWait<true>>("MutexTimed"),
      waitable<RWMutexWrite>("RWMutexWrite", true, false),
      waitable<RWMutexRead>("RWMutexRead", true, false),
      waitable<CondWait<false>>("Cond"),
      waitable<CondWait<true>>("CondWithContext"),
      waitable<CondInUnlock>("CondInUnlock"),
      waitable<WaitGroupWait>("WaitGroup"),
      waitable<SemaphoreAcquire>("Semaphore"),
      waitable<LatchWait>("Latch"),
      waitable<BarrierWait>("Barrier", false),
      waitable<OnceCall>("Once", false),
      waitable<SingleflightCall>("Singleflight", false),
      waitable<FutureWait>("Future"),
      waitable<ContextEnd<false>>("Context"),
      waitable<ContextEnd<true>>("SleepWithContext"),
      waitable<ContextFunctionOnStack>("ContextFunctionOnStack", false),
      waitable<TimerWait>("Timer"),
      waitable<ErrorGroupWait>("ErrorGroup", false),
      waitable<ScopeEnd>("Scope"),
  };
}

}  // namespace tuza::testing
