// EndHook: ends other libraries' threads that write to goroutines' stacks, before these stacks go.
//
// When the main goroutine has returned, the goroutines left behind stay parked, and their stacks are unmapped,
// unless a library has an address on one (Waiter without a Leave, sync/detail/wait.h). A thread that may write
// into the buffer of such a goroutine, or ready it, must have ended by then. The owner of the thread, which may
// be left behind itself, begins and ends the thread by an EndHook. exit() runs no hooks, because then all
// stacks stay.
//
// Inside only. Goroutines only. Every function parks.
#pragma once

namespace tuza::rt {

struct EndHooks;

class EndHook {
 public:
  // Runs under the lock of all hooks, so that a hook either has begun or has not when main returns. May park.
  // Must not make or destroy hooks.
  using Function = void (*)(void* argument);

  // Calls begin(argument), unless the main goroutine has already returned: what began then would never be
  // ended. Throws what begin() throws.
  EndHook(Function begin, Function end, void* argument);
  // Calls end(argument) if the hook has begun, unless main has returned meanwhile: the return of main ends all
  // hooks.
  ~EndHook();
  EndHook(const EndHook&) = delete;
  EndHook& operator=(const EndHook&) = delete;

 private:
  friend void run_end_hooks();
  void end_locked(EndHooks& hooks);

  const Function end_;
  void* const argument_;
  bool begun_ = false;       // this and all below: guarded by the lock of the list
  EndHook* next_ = nullptr;  // the hook that was made before this one
  EndHook* previous_ = nullptr;
};

// Called by rt/lifecycle/lifecycle.cpp, which keeps the hooks of a run in Sched.
EndHooks* make_end_hooks();
void delete_end_hooks(EndHooks* hooks);
// Called by the main goroutine, once per run: ends all hooks that have begun, the youngest first.
void run_end_hooks();

}  // namespace tuza::rt
