// The program that gdb_test.py inspects with tuza-gdb.py.
//
// It has goroutines that are parked at known depths in known functions, one that burns CPU, one in a marked
// blocking call, and one that has not run yet. When all are in place it calls ready_for_gdb(): the test's breakpoint. Afterwards the program
// uses what the parked goroutines kept on their stacks and in their registers, and exits with 0 if all of it
// is still correct.
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/run.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <chrono>
#include <cstddef>

extern "C" [[gnu::noinline]] void ready_for_gdb() { asm volatile(""); }

namespace {

tuza::Mutex mutex;
tuza::WaitGroup released;  // what the waiter waits for
tuza::WaitGroup finished;
std::atomic<bool> burning{false};
std::atomic<bool> calling{false};
std::atomic<bool> enough{false};
std::atomic<int> sum{0};

// A value that the compiler cannot know: the compiler must keep it in a register or on the stack while the
// goroutine is parked.
int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

// The test reads `kept` in these frames and expects the call chain outer -> middle -> inner. The code after
// each call keeps the call from becoming a tail call.
[[gnu::noinline]] void inner_sleep(int kept) {
  tuza::sleep_for(std::chrono::hours(1));
  sum += kept;
}
[[gnu::noinline]] void outer_sleep() {
  const int kept = opaque(1001);
  inner_sleep(opaque(1002));
  sum += kept;
}

[[gnu::noinline]] void inner_wait(int kept) {
  released.wait();
  sum += kept;
}
[[gnu::noinline]] void middle_wait(int kept) {
  inner_wait(opaque(2003));
  sum += kept;
}
[[gnu::noinline]] void outer_wait() {
  const int kept = opaque(2001);
  middle_wait(opaque(2002));
  sum += kept;
}

[[gnu::noinline]] void inner_lock(int kept) {
  mutex.lock();
  sum += kept;
  mutex.unlock();
}
[[gnu::noinline]] void outer_lock() {
  const int kept = opaque(3001);
  inner_lock(opaque(3002));
  sum += kept;
}

[[gnu::noinline]] void inner_burn() {
  while (!enough.load(std::memory_order_relaxed)) burning.store(true, std::memory_order_relaxed);
}
[[gnu::noinline]] void outer_burn() {
  inner_burn();
  sum += 1;
}

[[gnu::noinline]] void inner_call() {
  const tuza::BlockingCall call;
  while (!enough.load(std::memory_order_relaxed)) calling.store(true, std::memory_order_relaxed);
}
[[gnu::noinline]] void outer_call() {
  inner_call();
  sum += 1;
}

[[gnu::noinline]] void run_newborn() { sum += 1; }

// Starts a goroutine that `finished` counts.
template <void (*function)()>
void start(const char* name) {
  finished.add(1);
  tuza::go({.name = name}, [] {
    function();
    finished.done();
  });
}

int main_goroutine() {
  tuza::go({.name = "sleeper"}, [] { outer_sleep(); });  // longer than this program runs
  released.add(1);
  start<&outer_wait>("waiter");
  mutex.lock();
  start<&outer_lock>("locker");
  while (tuza::count_goroutines().waiting < 3) tuza::yield();
  start<&outer_call>("caller");
  while (!calling.load(std::memory_order_relaxed)) tuza::yield();
  start<&outer_burn>("burner");
  while (!burning.load(std::memory_order_relaxed)) tuza::yield();
  start<&run_newborn>("newborn");  // both Ps are taken

  ready_for_gdb();

  enough.store(true, std::memory_order_relaxed);
  mutex.unlock();
  released.done();
  finished.wait();
  return sum == 2001 + 2002 + 2003 + 3001 + 3002 + 1 + 1 + 1 ? 0 : 1;
}

}  // namespace

int main() { return tuza::run(tuza::RunOptions{.max_procs = 2}, main_goroutine); }
