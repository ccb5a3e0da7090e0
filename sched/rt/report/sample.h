// Asks a running goroutine where it is, for a dump: its stack, and what it works on (rt/report/activity.h).
//
//   the thread that asks                         the M, in the signal handler
//   --------------------                         ----------------------------
//   M::sample: null -> &request (release)
//   is the thread in state R? send the signal    M::sample: &request -> null (acquire)
//   wait for `answered`, at most for a while     write the answer, answered = 1 (release), wake
//   M::sample: &request -> null, or, if the
//   handler has taken it, wait for `answered`
//
// Why it is sound. The goroutine is interrupted and stands in its own handler, so its stack and its activity
// do not change while the handler reads them. The handler answers only if the goroutine is in user code
// (in_rt == 0): then M::current is that goroutine, and the stack pointer is on its stack or on one that the
// program made. Every address is checked before it is read (rt/report/walk.h). The request belongs to the
// caller; exactly one side takes it out of M::sample, so the handler never touches a request that has been
// given up. An answer takes about a microsecond, and no lock: a wait for one that has begun is short.
//
// A suspended goroutine (rt/slice/preempt_signal.h) sits in that handler already, and has the signal blocked.
// It is woken there, answers, and continues to wait: Suspend does not change.
//
// A thread that waits in the kernel is left alone, since the signal could end its call with EINTR. The kernel
// says where it waits. Between the look at the state and the signal the thread may begin such a call; the lane
// runs the same risk when it suspends (SA_RESTART covers all but sleeps and polls).
//
// Thread safety: any number of threads may ask. One goroutine answers one of them at a time.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/report/activity.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct Sample {
  static constexpr std::size_t kFramesMax = 32;
  enum class Result : std::uint8_t {
    kNotAsked,
    kNone,   // it has returned to the scheduler meanwhile, or is inside the runtime
    kTaken,  // frames and activity are valid
    kInKernel,  // if /proc tells: the system call and its place, in `call` and frames; then activity is valid, too
    kNoAnswer,  // its thread did not get a core in time
    kNoSignal,  // the runtime has no signal
  };
  Result result = Result::kNotAsked;
  std::array<std::uintptr_t, kFramesMax> frames;
  std::size_t frame_count = 0;
  std::int64_t call = -1;  // its number; -1: unknown, or a page fault
  ActivityText activity;
};

struct SampleRequest {
  std::uint64_t goroutine;
  Sample& sample;
  std::atomic<std::uint32_t> answered{0};
};

// Samples goroutine `id`, which was seen to run on `m`, and waits for the answer for at most `patience_ns`
// (longer only while the answer is being written). Blocks the thread: outside the runtime, in a BlockingCall
// if on a goroutine. The caller holds an ExternalEntry. Allocates nothing.
void take_sample(M& m, std::uint64_t id, std::int64_t patience_ns, Sample& sample);

// For the signal handler, on the thread of `m`. `context`: its third argument.
void answer_sample(M& m, const void* context);

}  // namespace tuza::rt
