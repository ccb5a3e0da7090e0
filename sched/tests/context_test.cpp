// The context switch, with every callee-saved register dirty. Also run for aarch64, under qemu-user.
#include <gtest/gtest.h>
#include <sanitizer/asan_interface.h>
#include <tuza/sched/arch/context.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tuza::rt {
namespace {

// A context of its own, which runs a function each time it is switched to.
class Coroutine {
 public:
  explicit Coroutine(std::function<void(Coroutine&)> body) : body_(std::move(body)), stack_(256 << 10) {
    inside_ = make_context(top(), &Coroutine::enter, this);
  }
  void resume() { context_switch(&outside_, inside_); }
  void suspend() { context_switch(&inside_, outside_); }
  [[nodiscard]] Context inside() const { return inside_; }
  [[nodiscard]] std::uintptr_t top() const {
    return reinterpret_cast<std::uintptr_t>(stack_.data() + stack_.size());
  }

 private:
  static void enter(void* self) {
    auto& me = *static_cast<Coroutine*>(self);
    me.body_(me);
    me.suspend();
  }

  std::function<void(Coroutine&)> body_;
  std::vector<std::byte> stack_;
  Context inside_, outside_;
};

TEST(Context, RunsTheEntryWithItsArgumentOnTheGivenStack) {
  std::uintptr_t seen = 0;
  Coroutine coroutine([&seen](Coroutine&) {
    // Not the address of a local: AddressSanitizer may keep locals elsewhere, and does so with GCC 14.
    seen = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  });
  coroutine.resume();
  EXPECT_LT(seen, coroutine.top());
  EXPECT_GT(seen, coroutine.top() - 4096);
}

TEST(Context, EntersWithTheAlignmentTheAbiDemands) {
  for (std::size_t offset = 0; offset < 32; ++offset) {
    std::vector<std::byte> stack(64 << 10);
    struct Probe {
      Context here, there;
      std::uintptr_t misalignment = 1;
    } probe;
    probe.there = make_context(
        reinterpret_cast<std::uintptr_t>(stack.data() + stack.size() - offset),
        [](void* argument) {
          auto& p = *static_cast<Probe*>(argument);
          alignas(16) volatile std::byte aligned[16] = {};
          p.misalignment = reinterpret_cast<std::uintptr_t>(&aligned[0]) % 16;
          context_switch(&p.there, p.here);
        },
        &probe);
    context_switch(&probe.here, probe.there);
    EXPECT_EQ(probe.misalignment, 0u) << "stack top moved by " << offset;
  }
}

// There are more live values than registers: the compiler must keep some in callee-saved registers and spill
// others, and all must survive. `leave` is inlined, including the switch: what a called function may clobber
// and what the switch may clobber differ.
template <class T, std::size_t kCount, class Leave>
T churn(const std::array<T, kCount>& seed, Leave leave) {
  std::array<T, kCount> v = seed;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kCount; ++i) v[i] = v[i] * 3 + v[(i + 1) % kCount];
    leave();
  }
  T sum{};
  for (const T x : v) sum = sum * 7 + x;
  return sum;
}

template <class T, class Lane = T>
void expect_values_survive() {
  std::array<T, 24> a{}, b{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = T{} + static_cast<Lane>(i + 1);
    b[i] = T{} + static_cast<Lane>(1000 - i);
  }
  const auto nowhere = [] {};
  const T expect_a = churn(a, nowhere), expect_b = churn(b, nowhere);
  T got_a{}, got_b{};
  Coroutine other([&](Coroutine& self) { got_b = churn(b, [&self] { self.suspend(); }); });
  got_a = churn(a, [&other] { other.resume(); });
  other.resume();
  EXPECT_EQ(std::memcmp(&got_a, &expect_a, sizeof(T)), 0);
  EXPECT_EQ(std::memcmp(&got_b, &expect_b, sizeof(T)), 0);
}

using Vector [[gnu::vector_size(16)]] = double;

TEST(Context, KeepsIntegerRegisters) { expect_values_survive<std::uint64_t>(); }
TEST(Context, KeepsFloatingPointRegisters) { expect_values_survive<double>(); }
TEST(Context, KeepsBothHalvesOfVectorRegisters) { expect_values_survive<Vector, double>(); }

TEST(Context, KeepsTheRoundingModeOfEachSide) {
  volatile double one = 1.0, three = 3.0;
  std::fesetround(FE_TONEAREST);
  const double nearest = one / three;
  double inside_first = 0, inside_second = 0;
  Coroutine other([&](Coroutine& self) {
    std::fesetround(FE_UPWARD);
    inside_first = one / three;
    self.suspend();
    inside_second = one / three;
  });
  other.resume();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_EQ(one / three, nearest);
  other.resume();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_EQ(inside_first, inside_second);
  EXPECT_GT(inside_first, nearest);
}

TEST(Context, NewContextsBeginWithTheDefaultRoundingMode) {
  std::fesetround(FE_DOWNWARD);
  int mode = -1;
  Coroutine other([&mode](Coroutine&) { mode = std::fegetround(); });
  other.resume();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(mode, FE_TONEAREST);
}

TEST(Context, ManyContextsAlternate) {
  std::vector<int> order;
  std::vector<std::unique_ptr<Coroutine>> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(std::make_unique<Coroutine>([&order, i](Coroutine& self) {
      for (int round = 0; round < 3; ++round) {
        order.push_back(round * 10 + i);
        self.suspend();
      }
    }));
  }
  for (int round = 0; round < 3; ++round) {
    for (auto& coroutine : all) coroutine->resume();
  }
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int>(i));
  EXPECT_EQ(order.size(), 30u);
}

struct Unwound {
  std::vector<std::uintptr_t> functions;
  Context back;
};

_Unwind_Reason_Code collect(_Unwind_Context* context, void* argument) {
  if (_Unwind_GetIP(context) == 0) return _URC_END_OF_STACK;
  static_cast<Unwound*>(argument)->functions.push_back(_Unwind_GetRegionStart(context));
  return _URC_NO_REASON;
}

#if defined(__x86_64__)
[[gnu::force_align_arg_pointer]]
#endif
void unwind_here(void* argument) {
  auto& u = *static_cast<Unwound*>(argument);
  _Unwind_Backtrace(&collect, &u);
  Context unused;
  context_switch(&unused, u.back);
}

[[gnu::noinline]] void inner(Coroutine& self) {
  self.suspend();
  std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
}
[[gnu::noinline]] void outer(Coroutine& self) {
  inner(self);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

TEST(Context, ASuspendedOneCanBeUnwoundToItsEntryAndThenResumes) {
  bool finished = false;
  Coroutine coroutine([&finished](Coroutine& self) {
    outer(self);
    finished = true;
  });
  coroutine.resume();

  Unwound unwound;
  const Context parked = coroutine.inside();
  std::array<std::byte, kFrameBytes> frame;
  ASAN_UNPOISON_MEMORY_REGION(parked.sp, kFrameBytes);  // the frame holds more than one variable
  std::memcpy(frame.data(), parked.sp, frame.size());
  tuza_context_call(&unwound.back, parked, &unwind_here, &unwound);
  ASAN_UNPOISON_MEMORY_REGION(parked.sp, kFrameBytes);
  std::memcpy(parked.sp, frame.data(), frame.size());

  const auto contains = [&unwound](auto* function) {
    const auto address = reinterpret_cast<std::uintptr_t>(function);
    return std::find(unwound.functions.begin(), unwound.functions.end(), address) != unwound.functions.end();
  };
  EXPECT_TRUE(contains(&inner));
  EXPECT_TRUE(contains(&outer));
  EXPECT_TRUE(contains(&tuza_context_entry)) << "the walk must end at the entry, not before";
  EXPECT_EQ(unwound.functions.back(), reinterpret_cast<std::uintptr_t>(&tuza_context_entry));

  coroutine.resume();
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace tuza::rt
