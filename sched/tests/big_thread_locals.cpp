// Static thread_locals of THREAD_LOCAL_KIB, in a program of their own. The C library takes them off the stack
// of each thread. With 246 KiB the program crashed at its start, and with more it could not start.
//
// Exits with 0 if each M could use all of its thread_locals, and goroutines and handoffs worked meanwhile.
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace {

constexpr std::size_t kBytes = std::size_t{THREAD_LOCAL_KIB} << 10;
constexpr int kThreads = 20;

thread_local unsigned char initialised[kBytes / 2] = {1};
thread_local unsigned char zeroed[kBytes / 2];

std::atomic<int> wrong{0};

// Uses all thread_locals of this thread; the caller keeps the thread.
[[gnu::noinline]] void use_thread_locals(unsigned char mark) {
  wrong += initialised[0] == 1 && zeroed[0] == 0 ? 0 : 1;
  for (unsigned char* all : {initialised, zeroed}) {
    for (std::size_t i = 0; i < kBytes / 2; ++i) all[i] = static_cast<unsigned char>(mark + i);
  }
}
[[gnu::noinline]] void check_thread_locals(unsigned char mark) {
  for (const unsigned char* all : {initialised, zeroed}) {
    for (std::size_t i = 0; i < kBytes / 2; ++i) {
      wrong += all[i] == static_cast<unsigned char>(mark + i) ? 0 : 1;
    }
  }
}

// What the scheduler does on the rest of the stack.
void work() {
  tuza::WaitGroup group;
  for (int i = 0; i < 200; ++i) {
    group.go([] {
      tuza::yield();
      tuza::sleep_for(std::chrono::microseconds(100));
      const std::string text = std::to_string(1.5) + std::string(1000, 'x');
      if (text.size() < 1000) ++wrong;
    });
  }
  group.wait();
}

}  // namespace

int main() {
  const int status = tuza::run([] {
    std::atomic<int> inside = 0;
    std::atomic<bool> leave = false;
    tuza::WaitGroup group;
    for (int i = 0; i < kThreads; ++i) {
      group.go([&, i] {
        tuza::lock_os_thread();
        use_thread_locals(static_cast<unsigned char>(i));
        // Handoffs: as many threads as there are of these goroutines.
        tuza::blocking([&] {
          ++inside;
          while (!leave) ::usleep(1000);
        });
        tuza::yield();
        check_thread_locals(static_cast<unsigned char>(i));
        tuza::unlock_os_thread();
      });
    }
    while (inside < kThreads) tuza::sleep_for(std::chrono::milliseconds(1));
    work();
    leave = true;
    group.wait();
    return 0;
  });
  if (wrong != 0) std::fprintf(stderr, "%d are wrong\n", wrong.load());
  return wrong == 0 ? status : 1;
}
