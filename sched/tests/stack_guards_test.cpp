// Guard pages on a kernel without MADV_GUARD_INSTALL (before Linux 6.13): each takes two of the mappings that
// the kernel allows a process, and the rest of the process needs some, too.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace testing;

// Applies to this process and all threads that it creates later.
void make_the_kernel_older() {
  constexpr std::uint32_t kGuardInstall = 102;
  const auto argument = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t));
  std::array<sock_filter, 6> filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kGuardInstall, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    ::_exit(3);
  }
}

std::size_t maps() {
  std::size_t count = 0;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

std::size_t maps_max() {
  std::size_t count = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> count;
  return count;
}

// The number of stacks that get guards: each takes two mappings, and half of all may be used.
std::size_t guards_max() { return maps_max() / 4; }

int times_said(const Ended& ended) {
  constexpr std::string_view kText = "new goroutine stacks have no guard pages from here on";
  int times = 0;
  for (std::size_t at = 0; (at = ended.said.find(kText, at)) != std::string::npos; at += kText.size())
    ++times;
  return times;
}

// Calls `while_they_wait` when `count` goroutines are parked, each with words of its own on its stack.
template <class F>
void with_parked_goroutines(int count, F&& while_they_wait) {
  std::atomic<int> parked = 0, wrong = 0;
  WaitGroup group, end;
  end.add(1);
  for (int i = 0; i < count; ++i) {
    group.go([&, i] {
      volatile int words[16];
      for (int& word : const_cast<int(&)[16]>(words)) word = i;
      ++parked;
      end.wait();
      for (const int word : words) wrong += word != i ? 1 : 0;
    });
  }
  while (parked < count) sleep_for(std::chrono::milliseconds(1));
  while_they_wait();
  end.done();
  group.wait();
  if (wrong != 0) ::_exit(9);
}

// The operations that used to fail when 32,000 goroutines had used up the mappings. Each needs mappings of
// its own.
bool others_get_mappings() {
  for (int i = 0; i < 1000; ++i) {
    const int protection = i % 2 == 0 ? PROT_READ : PROT_READ | PROT_WRITE;
    if (::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return false;
  }
  std::thread([] {}).join();
  WaitGroup group;
  std::atomic<int> inside = 0;
  for (int i = 0; i < 40; ++i) {
    group.go([&inside] {
      ++inside;
      blocking([&inside] {
        while (inside < 40) ::usleep(1000);
      });
    });
  }
  group.wait();
  return true;
}

TEST(StackGuards, WithoutTheAdviceTheyLeaveHalfOfTheMappingsToOthers) {
  constexpr int kCount = scaled(200'000);
  const Ended ended = in_fork([] {
    make_the_kernel_older();
    const std::size_t before = maps();
    const int status = run([before] {
      bool good = false;
      with_parked_goroutines(kCount, [&] {
        // An arena of stacks, or a thread, takes a few mappings.
        const std::size_t more = maps() - before;
        good = more >= guards_max() && more <= maps_max() / 2 + 4'000 && others_get_mappings();
        if (static_cast<std::size_t>(kCount) < guards_max()) good = others_get_mappings();
        if (!good) std::fprintf(stderr, "mappings: %zu more, of %zu\n", more, maps_max());
      });
      return good ? 7 : 8;
    });
    ::_exit(status);
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << "\n" << ended.said;
  EXPECT_EQ(times_said(ended), static_cast<std::size_t>(kCount) > guards_max() ? 1 : 0) << ended.said;
}

// The guards of one runtime are given back with its stacks.
TEST(StackGuards, WithoutTheAdviceEachRuntimeHasAsMany) {
  constexpr int kCount = scaled(12'000);
  const Ended ended = in_fork([] {
    make_the_kernel_older();
    for (int i = 0; i < 4; ++i) {
      run([] { with_parked_goroutines(kCount, [] {}); });
    }
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << "\n" << ended.said;
  EXPECT_EQ(times_said(ended), static_cast<std::size_t>(kCount) > guards_max() ? 1 : 0) << ended.said;
}

[[gnu::noinline]] int descend(int depth) {
  volatile char frame[200];
  frame[depth % 200] = static_cast<char>(depth);
  return depth == 0 ? 0 : descend(depth + 1) + frame[depth % 200];
}

TEST(StackGuards, WithoutTheAdviceTheyStillFindOverflows) {
  const Ended ended = in_fork([] {
    make_the_kernel_older();
    run([] {
      go({.name = "deep"}, [] { descend(1); });
      sleep_for(std::chrono::seconds(60));
    });
  });
  EXPECT_TRUE(ended.by_signal(SIGABRT)) << ended.status;
  EXPECT_TRUE(ended.said_this("deep: stack overflow")) << ended.said;
}

// -- `ulimit -v`, softlimit, LimitAS=.

constexpr std::size_t kMiB = std::size_t{1} << 20;

// The portable form leaves it to glibc how many arenas malloc has: each takes 64 MiB, which stacks then lack.
void allow_only(std::size_t more_bytes) {
#if defined(TUZA_PORTABLE)
  ::mallopt(M_ARENA_MAX, 1);
#endif
  limit_address_space(more_bytes);
}

TEST(LimitedAddressSpace, IsNotReservedForStacksThatNobodyNeeds) {
  const auto ended = in_fork([] {
    allow_only(160 * kMiB);
    const int status = run(RunOptions{.max_procs = 2}, [] {
      WaitGroup group;
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{64} << 10, kMiB, 8 * kMiB}) {
        for (int i = 0; i < 3; ++i) {
          group.add(1);
          go({.stack_bytes = bytes}, [&group] {
            sleep_for(std::chrono::milliseconds(1));
            group.done();
          });
        }
      }
      group.wait();
    });
    ::_exit(status);
  });
  EXPECT_TRUE(ended.with_code(0)) << ended.status << ended.said;
}

TEST(LimitedAddressSpace, StacksBeyondItAreAnErrorOfTryGoAndLeaveSomeToOthers) {
  const auto ended = in_fork([] {
    allow_only(160 * kMiB);
    const int status = run(RunOptions{.max_procs = 2}, [] {
      WaitGroup group;
      Latch end(1);
      Result<void> started;
      for (int i = 0; i < 1000 && started; ++i) {
        group.add(1);
        started = try_go({.stack_bytes = kMiB}, [&] {
          end.wait();
          group.done();
        });
      }
      group.done();
      EXPECT_FALSE(started);
      EXPECT_TRUE(started.error().is(std::errc::not_enough_memory));
      // Some is left for malloc, and for goroutines whose start is not refused.
      const auto block = std::make_unique_for_overwrite<std::byte[]>(4 * kMiB);
      group.add(1);
      go({.stack_bytes = 8 * kMiB}, [&group, &block] {
        block[kMiB] = std::byte{1};
        group.done();
      });
      end.count_down();
      group.wait();
    });
    ::_exit(::testing::Test::HasFailure() ? 9 : status);
  });
  EXPECT_TRUE(ended.with_code(0)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza
