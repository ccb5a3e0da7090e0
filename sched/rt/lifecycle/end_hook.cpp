#include <tuza/sched/rt/lifecycle/end_hook.h>

#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/mutex.h>

#include <mutex>
#include <new>

namespace tuza::rt {

// The end of the run waits for the mutex, so its holder must not be suspended.
struct TUZA_SCOPED_CAPABILITY HooksLock {
  explicit HooksLock(Mutex& mutex) TUZA_ACQUIRE(mutex) : lock(mutex) {}
  ~HooksLock() TUZA_RELEASE() = default;
  const LockGuard<Mutex> lock;
  const NoPreempt keep_going;
};

// The hooks of one run. Each run needs a mutex of its own: goroutines that are left behind while they wait for
// the mutex stay in its queue.
struct EndHooks {
  Mutex mutex;
  EndHook* first TUZA_GUARDED_BY(mutex) = nullptr;
  bool main_returned TUZA_GUARDED_BY(mutex) = false;
};

namespace {

EndHooks& hooks_of_this_run() {
  if (current_g() == nullptr) fatal("EndHook used outside a goroutine");
  const ExternalEntry entry;
  return *entry.sched()->end_hooks;
}

}  // namespace

EndHooks* make_end_hooks() {
  void* memory = map_pages(sizeof(EndHooks));
  if (memory == nullptr) fatal("no memory for the runtime");
  return ::new (memory) EndHooks;
}
// Does not call the destructor: the destructor of the mutex would find goroutines in its queue that are gone.
void delete_end_hooks(EndHooks* hooks) { unmap_pages(hooks, sizeof(EndHooks)); }

EndHook::EndHook(Function begin, Function end, void* argument) : end_(end), argument_(argument) {
  EndHooks& hooks = hooks_of_this_run();
  const HooksLock lock(hooks.mutex);
  if (hooks.main_returned) return;
  begin(argument_);
  begun_ = true;
  next_ = hooks.first;
  if (next_ != nullptr) next_->previous_ = this;
  hooks.first = this;
}

EndHook::~EndHook() {
  EndHooks& hooks = hooks_of_this_run();
  const HooksLock lock(hooks.mutex);
  if (begun_) end_locked(hooks);
}

void EndHook::end_locked(EndHooks& hooks) {
  begun_ = false;
  (previous_ != nullptr ? previous_->next_ : hooks.first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  end_(argument_);
}

void run_end_hooks() {
  EndHooks& hooks = hooks_of_this_run();
  const HooksLock lock(hooks.mutex);
  hooks.main_returned = true;
  while (hooks.first != nullptr) hooks.first->end_locked(hooks);
}

}  // namespace tuza::rt
