#include <tuza/sched/time/after_func.h>

#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/time/detail/alarm.h>

#include <atomic>

namespace tuza {
namespace rt {

// State shared by the handle, the timer and running goroutines, with a reference count. The timer's
// reference passes to the goroutine that it starts. Hence no reference is released on the scheduler's stack,
// where nothing may be freed.
class DelayedFunction {
 public:
  DelayedFunction(MoveOnlyFunction<void()> body, const std::source_location& where)
      : body_(std::move(body)), where_(where), alarm_(&DelayedFunction::on_fire, this) {}

  bool arm(std::int64_t when_ns);
  bool disarm();
  void unref() {
    // acq_rel: the thread that deletes it sees everything that the others have done with it.
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  // The closure of the goroutine. Its destructor releases the reference, since the function may end the
  // goroutine by goexit().
  struct Run {
    explicit Run(DelayedFunction* f) : function(f) {}
    Run(Run&& other) noexcept : function(std::exchange(other.function, nullptr)) {}
    ~Run() {
      if (function != nullptr) function->unref();
    }
    void operator()() const { function->body_(); }
    DelayedFunction* function;
  };

  static void on_fire(Timer& timer);

  MoveOnlyFunction<void()> body_;
  const std::source_location where_;
  std::atomic<std::uint32_t> references_{1};  // the handle, the timer while it is armed, each run
  Alarm alarm_;
};

bool DelayedFunction::arm(std::int64_t when_ns) {
  const Enter rt;
  const LockGuard lock(alarm_.lock());
  const bool was_armed = alarm_.arm(when_ns);
  if (!was_armed) references_.fetch_add(1, std::memory_order_relaxed);  // on_fire() comes after the lock
  return was_armed;
}

bool DelayedFunction::disarm() {
  const Enter rt;
  const LockGuard lock(alarm_.lock());
  if (!alarm_.disarm()) return false;
  references_.fetch_sub(1, std::memory_order_relaxed);  // the caller has another reference
  return true;
}

// Runs on the scheduler's stack. Starting a goroutine is allowed there: its record comes from the P or from
// fresh pages, and the closure lies in the record.
void DelayedFunction::on_fire(Timer& timer) {
  auto& self = *static_cast<DelayedFunction*>(timer.argument);
  static_assert(sizeof(Run) <= 64, "go() must not need a stack for it");
  {
    const LockGuard lock(self.alarm_.lock());
    if (!self.alarm_.fires()) return;
  }
  const Spawned spawned = spawn(GoOptions{}, Run(&self), false, self.where_);
  if (spawned != Spawned::kYes) spawn_failed(spawned);
}

}  // namespace rt

DelayedCall after_func(rt::AnyDuration delay, MoveOnlyFunction<void()> function,
                       const std::source_location& where) {
  auto* const delayed = new rt::DelayedFunction(std::move(function), where);
  delayed->arm(rt::deadline_after(delay.duration));
  return DelayedCall(delayed);
}

DelayedCall::~DelayedCall() {
  if (function_ == nullptr) return;
  function_->disarm();
  function_->unref();
}

bool DelayedCall::stop() { return function_ != nullptr && function_->disarm(); }

bool DelayedCall::reset_ns(std::chrono::nanoseconds delay) {
  return function_ != nullptr && function_->arm(rt::deadline_after(delay));
}

void DelayedCall::detach() {
  if (function_ != nullptr) std::exchange(function_, nullptr)->unref();
}

}  // namespace tuza
