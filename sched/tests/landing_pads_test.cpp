// Branch target identification (BTI) on aarch64: in guarded code an indirect jump must arrive at a landing
// pad, and the context switch makes several such jumps that no compiler knows of.
//
// A whole program runs guarded only if every object in it is marked, including those of the C library. The
// test guards its own code from within instead, built with -mbranch-protection=standard.
#include <gtest/gtest.h>

#if defined(__ARM_FEATURE_BTI_DEFAULT)
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/report/backtrace.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace tuza {
namespace {

constexpr int kProtBti = 0x10;                 // PROT_BTI, missing in older headers
constexpr unsigned long kHwcap2Bti = 1 << 17;  // HWCAP2_BTI

bool processor_checks() { return (getauxval(AT_HWCAP2) & kHwcap2Bti) != 0; }

// On a processor that does not check, the code runs unguarded.
class GuardedCode {
 public:
  GuardedCode() { protect(PROT_READ | PROT_EXEC | (processor_checks() ? kProtBti : 0)); }
  ~GuardedCode() { protect(PROT_READ | PROT_EXEC); }
  GuardedCode(const GuardedCode&) = delete;
  GuardedCode& operator=(const GuardedCode&) = delete;

 private:
  static void protect(int protection) { dl_iterate_phdr(&GuardedCode::protect_first, &protection); }

  // The first object is the program itself.
  static int protect_first(dl_phdr_info* object, std::size_t, void* protection) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& segment = object->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
      const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
      EXPECT_EQ(mprotect(reinterpret_cast<void*>(begin), end - begin, *static_cast<int*>(protection)), 0);
    }
    return 1;
  }
};

// Proves that the other tests can fail: if the processor allowed this jump, they would not notice a missing
// pad.
TEST(LandingPadsDeathTest, AreDemandedByAProcessorThatChecks) {
  const auto jump = [] {
    const GuardedCode guarded;
    asm volatile("adr x9, 1f\n\tbr x9\n1:" ::: "x9", "memory");
  };
  if (processor_checks()) {
    EXPECT_EXIT(jump(), ::testing::KilledBySignal(SIGILL), "");
  } else {
    jump();
  }
}

TEST(LandingPads, AreWhereSwitchesArrive) {
  const GuardedCode guarded;
  testing::run_with(2, [] {
    WaitGroup done;
    for (int i = 0; i < 100; ++i) {
      done.go([] {
        for (int round = 0; round < 10; ++round) {
          try {
            throw std::runtime_error("");
          } catch (const std::runtime_error&) {
            yield();
          }
        }
      });
    }
    done.wait();
  });
}

TEST(LandingPads, AreWhereTheBackTraceOfAParkedGoroutineArrives) {
  const GuardedCode guarded;
  const testing::LongSlices long_slices;  // after one yield() it waits
  testing::run_with(1, [] {
    WaitGroup gate, done;
    gate.add(1);
    done.go([&gate] { gate.wait(); });
    yield();
    rt::GPool& gs = rt::active()->gs;
    std::size_t frames = 0;
    for (std::size_t i = 0; i < gs.count(); ++i) {
      if (gs.at(i).status == rt::GStatus::kWaiting) frames += rt::backtrace_of_parked(gs.at(i)).size;
    }
    EXPECT_GT(frames, 3u);
    gate.done();
    done.wait();
  });
}

}  // namespace
}  // namespace tuza
#endif
