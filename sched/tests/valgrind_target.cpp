// The program that valgrind_test.py runs under Memcheck: everything that moves stack pointers or leaves frames behind.
//
// With the argument `mistake` it also makes one mistake on a goroutine, which Memcheck must find.
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace {

using tuza::WaitGroup;

// Frames of 1 KiB each, all written and read.
int deep(int frames) {
  std::array<char, 1024> frame;
  frame.fill(static_cast<char>(frames));
  if (frames > 0 && deep(frames - 1) < 0) return -1;
  tuza::yield();
  return frame[static_cast<std::size_t>(frames) % frame.size()] == static_cast<char>(frames) ? frames : -1;
}

// Goroutines on stacks of which others have used other parts: closures and the record of goexit() are written
// below frames that are gone.
void stacks_are_used_again() {
  std::atomic<int> wrong = 0;
  for (int round = 0; round < 4; ++round) {
    WaitGroup group;
    for (int i = 0; i < 20; ++i) {
      group.go([&wrong, i, large = std::array<char, 20'000>{}] {
        for (const char byte : large) wrong += byte;
        if (deep(i) != i) ++wrong;
      });
      group.go([&wrong, i] {
        if (deep(150) != 150) ++wrong;
        if (i % 2 == 0) tuza::goexit();
      });
    }
    group.wait();
  }
  if (wrong != 0) std::abort();
}

void goroutines_compute() {
  WaitGroup group;
  std::atomic<int> started = 0;
  for (int i = 0; i < 6; ++i) {
    group.go([&started] {
      ++started;
      while (started.load() < 6) {  // more than there are Ps: ends only if the runtime takes Ps away
      }
    });
  }
  group.wait();
}

void goroutines_meet() {
  WaitGroup group;
  tuza::Chan<std::unique_ptr<int>> values(2);
  for (int i = 0; i < 8; ++i) {
    group.go([&values] {
      for (int k = 0; k < 100; ++k) values.send(std::make_unique<int>(k));
    });
  }
  int sum = 0;
  for (int k = 0; k < 800; ++k) sum += **values.recv();
  group.wait();
  if (sum != 8 * 4950) std::abort();
}

// Threads of the runtime end, and others begin.
void threads_end() {
  WaitGroup group;
  for (int i = 0; i < 8; ++i) {
    group.go([] {
      tuza::lock_os_thread();
      deep(3);
    });
  }
  group.wait();
}

// Small stacks are made when Ms have threads already, and so lie beside the stacks of those threads.
void small_stacks_are_used() {
  WaitGroup group;
  for (int i = 0; i < 20; ++i) {
    group.add(1);
    tuza::go({.stack_bytes = std::size_t{64} << 10}, [&group] {
      for (int round = 0; round < 10; ++round) tuza::sleep_for(std::chrono::microseconds(100));
      group.done();
    });
  }
  group.wait();
}

[[gnu::noinline]] int make_a_mistake() {
  auto value = std::make_unique<std::array<int, 4>>();
  const auto* freed = value.get();
  asm("" : "+r"(freed));
  value.reset();
  return freed->at(1);
}

}  // namespace

int main(int argc, char** argv) {
  const bool mistake = argc > 1 && std::string_view(argv[1]) == "mistake";
  for (int runs = 0; runs < 2; ++runs) {
    tuza::run([mistake] {
      stacks_are_used_again();
      goroutines_compute();
      goroutines_meet();
      threads_end();
      small_stacks_are_used();
      if (mistake && make_a_mistake() == 12345) std::abort();
    });
  }
}
