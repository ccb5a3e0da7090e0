#include <tuza/sched/rt/report/sample.h>

#include <tuza/sched/arch/interrupted.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/base/thread_state.h>
#include <tuza/sched/rt/report/walk.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {
namespace {

using Outcome = Sample::Result;

// A wake-up of a suspended thread is lost if the thread was about to wait, and the thread may be suspended
// after the signal was sent: look again after this long.
constexpr std::int64_t kRepeatNs = 1'000'000;
// A goroutine that calls the runtime all the time may be inside at each signal.
constexpr int kAttempts = 8;

bool still_runs(const M& m, std::uint64_t id) {
  const G* g = m.current.follow();
  return g != &m.g0 && g->id.get() == id;
}

bool is_suspended(const M& m) {
  return m.suspend.load(std::memory_order_acquire) == static_cast<std::uint32_t>(Suspend::kStopped);
}

bool is_answered(const SampleRequest& request) {
  return request.answered.load(std::memory_order_acquire) != 0;
}

// Asks the thread, unless it has the signal already. Returns kTaken if an answer can be expected, else the
// reason why none can.
Outcome ask(M& m, std::uint64_t id, bool& signalled) {
  if (is_suspended(m)) {
    futex_wake(m.suspend, 1);
    return Outcome::kTaken;
  }
  if (signalled) return Outcome::kTaken;
  if (!thread_is_runnable(m.thread_id, false) && !is_suspended(m)) return Outcome::kInKernel;
  if (!still_runs(m, id)) return Outcome::kNone;
  signalled = m.sched->preempt_signal.poke(m);
  return signalled ? Outcome::kTaken : Outcome::kNoSignal;
}

// Waits for the answer. Returns the result in case that none has come.
Outcome wait_for_answer(M& m, SampleRequest& request, std::int64_t end_ns) {
  for (bool signalled = false;;) {
    if (const Outcome result = ask(m, request.goroutine, signalled); result != Outcome::kTaken) return result;
    if (!is_answered(request)) futex_wait(request.answered, 0, kRepeatNs);
    if (is_answered(request) || !still_runs(m, request.goroutine)) return Outcome::kNone;
    if (now_ns() >= end_ns) return Outcome::kNoAnswer;
  }
}

void sample_once(M& m, std::uint64_t id, std::int64_t end_ns, Sample& sample) {
  SampleRequest request{id, sample};
  SampleRequest* expected = nullptr;
  // Release: the handler finds the request complete. Another dump may be asking the same thread.
  while (!m.sample.compare_exchange_strong(expected, &request, std::memory_order_release,
                                           std::memory_order_relaxed)) {
    if (now_ns() >= end_ns || !still_runs(m, id)) return;
    expected = nullptr;
    futex_wait(request.answered, 0, kRepeatNs);
  }
  const Outcome otherwise = wait_for_answer(m, request, end_ns);
  expected = &request;
  // Relaxed: if the request comes back, the handler has not touched it; if not, `answered` orders the answer.
  if (m.sample.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed)) {
    sample.result = otherwise;
    return;
  }
  while (!is_answered(request)) futex_wait(request.answered, 0);
}

}  // namespace

void take_sample(M& m, std::uint64_t id, std::int64_t patience_ns, Sample& sample) {
  const std::int64_t end = now_ns() + patience_ns;
  sample.result = Outcome::kNone;
  sample.frame_count = sample.activity.size = 0;
  sample.call = -1;
  for (int attempt = 0; attempt < kAttempts && sample.result == Outcome::kNone && still_runs(m, id);
       ++attempt) {
    sample_once(m, id, end, sample);
  }
  if (sample.result != Outcome::kInKernel) return;
  const WaitingCall call = waiting_call(m.thread_id);
  sample.call = call.number;
  sample.frames[0] = call.at;
  sample.frame_count = call.at == 0 ? 0 : 1;
  const G* g = m.current.follow();
  if (sample.frame_count == 0 || g == &m.g0) return;
  sample.activity.read_from_outside(*g);
  // Otherwise the goroutine may have continued, and what was read may be of another time.
  if (waiting_call(m.thread_id) != call || !still_runs(m, id)) sample.activity.size = 0;
}

void answer_sample(M& m, const void* context) {
  if (m.sample.load(std::memory_order_relaxed) == nullptr) return;
  SampleRequest* request = m.sample.exchange(nullptr, std::memory_order_acquire);
  if (request == nullptr) return;
  const G& g = *m.current;
  Sample& sample = request->sample;
  // Inside the runtime the goroutine may be about to change.
  if (m.in_rt.load(std::memory_order_relaxed) == 0 && &g != &m.g0 && g.id.get() == request->goroutine) {
    sample.frame_count = walk_interrupted(g, interrupted_at(context), sample.frames);
    sample.activity.read(g);
    sample.result = Outcome::kTaken;
  }
  std::atomic<std::uint32_t>& answered = request->answered;
  answered.store(1, std::memory_order_release);
  // The request may be gone by now: the wake-up uses its address only, and whatever waits there checks again.
  futex_wake(answered, 1);
}

}  // namespace tuza::rt
