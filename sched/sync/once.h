// Public header, part of <tuza/sync.h>.
//
// Once: runs a function once, in the first caller; the other callers wait until it has finished.
// OnceValue: a value that is made at its first use.
//
//     static tuza::Once once;
//     once.call([] { load_tables(); });
//
//     tuza::OnceValue config([] { return parse(read_file("tuza.conf")); });
//     use(config());                                               // the same object each time
//
// An exception goes to the caller whose function threw it; the next caller, or a waiting one, then runs its
// own function, as with std::call_once. (In Go a panic counts as done, which leaves later callers with
// something that was never made.) goexit() in the function counts like an exception.
//
// The function may park. It must not call the same Once: it would wait for itself.
//
// Ordering: everything that the function did is visible to every caller whose call() returns.
// Lifetime: may be destroyed when every call has returned.
// Thread-safe; any thread, inside and outside tuza::run. call() parks the goroutine (a thread blocks) while
// another caller runs the function; afterwards it costs one load.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/mutex.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace tuza {

// Its calls are not analysed: run() unlocks the mutex when the function has ended.
class Once {
 public:
  Once() = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  ~Once() { mutex_.check_nobody_waits("Once"); }

  // Parks if another caller runs the function.
  template <class F>
  void call(F&& function) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    if (done()) return;
    if (!mutex_.try_lock()) (void)mutex_.lock_slow(WaitReason::kOnce, rt::Until{});
    run(std::forward<F>(function));
  }
  // Returns the context's cause if the context ends before another caller's function does, or has already
  // ended. The context does not interrupt `function`. Parks.
  template <class F>
  [[nodiscard]] Result<void> call(const Context& context, F&& function) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    if (done()) return {};
    if (Result<void> locked = mutex_.lock(context); !locked) return locked;
    run(std::forward<F>(function));
    return {};
  }
  // acquire: pairs with the store in run(), so that the effects of the function are visible.
  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  // Releases what call() locked; the two ways of locking there are none that the analysis knows.
  template <class F>
  void run(F&& function) TUZA_RELEASE(mutex_) {
    const LockGuard lock(mutex_, std::adopt_lock);
    if (done_.load(std::memory_order_relaxed)) return;
    std::invoke(std::forward<F>(function));
    done_.store(true, std::memory_order_release);
  }

  std::atomic<bool> done_{false};  // written under mutex_
  Mutex mutex_;                    // held while a function runs
};

template <class F>
class OnceValue {
 public:
  using Value = std::invoke_result_t<F&>;
  static_assert(std::is_object_v<Value>, "the function returns a value, no reference and not void");

  explicit OnceValue(F function) : function_(std::move(function)) {}

  // The first call makes the value. The reference is valid as long as the OnceValue. Parks like
  // Once::call().
  Value& operator()() {
    once_.call([this] { value_.emplace(function_()); });
    return *value_;
  }
  // The same, or the context's cause, like Once::call().
  [[nodiscard]] Result<Value*> operator()(const Context& context) {
    if (Result<void> made = once_.call(context, [this] { value_.emplace(function_()); }); !made) {
      return std::unexpected(made.error());
    }
    return &*value_;
  }

 private:
  Once once_;
  F function_;
  std::optional<Value> value_;  // written once, under once_
};

}  // namespace tuza
