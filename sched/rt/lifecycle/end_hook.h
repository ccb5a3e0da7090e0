// What has to end before goroutines' stacks go: threads of other libraries that write to them.
//
// When the main goroutine has returned, those left behind stay parked, and their stacks are unmapped, but where a
// library has an address on one (Waiter without a Leave, sync/detail/wait.h). A thread that is about to write into the buffer of
// such a goroutine, or to ready it, must have ended by then. Its owner, which may be left behind itself, begins and
// ends it by an EndHook. exit() runs no hooks: all stacks stay then.
//
// Inside only. Goroutines only. Everything parks.
#pragma once

namespace tuza::rt {

struct EndHooks;

class EndHook {
 public:
  // They run under the lock of all hooks, so that one is either there or not when main returns; they may
  // park, and must not make or destroy hooks.
  using Function = void (*)(void* argument);

  // Calls begin(argument), unless the main goroutine has returned already: what begins then would not be
  // ended. Throws what that throws.
  EndHook(Function begin, Function end, void* argument);
  // Calls end(argument), if it has begun and main has not returned meanwhile, which ends it too.
  ~EndHook();
  EndHook(const EndHook&) = delete;
  EndHook& operator=(const EndHook&) = delete;

 private:
  friend void run_end_hooks();
  void end_locked(EndHooks& hooks);

  const Function end_;
  void* const argument_;
  bool begun_ = false;       // the rest is guarded by the lock of the list
  EndHook* next_ = nullptr;  // those that were made before
  EndHook* previous_ = nullptr;
};

// For rt/lifecycle/lifecycle.cpp, which keeps a run's hooks in Sched.
EndHooks* make_end_hooks();
void delete_end_hooks(EndHooks* hooks);
// By the main goroutine, once in a run: ends what has begun, the youngest first.
void run_end_hooks();

}  // namespace tuza::rt
