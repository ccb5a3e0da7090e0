#include <tuza/sched/rt/lane.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/clock.h>
#include <tuza/sched/rt/mapping.h>
#include <tuza/sched/rt/preempt_signal.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/thread_watch.h>

#include <algorithm>
#include <utility>

namespace tuza::rt {
namespace {

// Looks that are closer together say nothing about CPU use. A thread that waits in the kernel is looked at
// less and less often: there may be thousands.
constexpr std::int64_t kSampleMinNs = 1'500'000;
constexpr std::int64_t kSampleMaxNs = 64'000'000;
constexpr std::int64_t kBurnsOneIn = 20;  // 5 %
// Who has not answered for so long is asked again: its signal may have gone to a handler that replaced ours.
constexpr std::int64_t kAnswerNs = 100'000'000;

Suspend suspend_of(const M& m) { return static_cast<Suspend>(m.suspend.load(std::memory_order_acquire)); }

bool runs_without_p(const M& m) { return (m.taken.load(std::memory_order_acquire) & taken::kGone) != 0; }

void begin_turn(M& m, std::int64_t now) {
  m.seat.turn_cpu_ns = m.seat.seen_cpu_ns = thread_cpu_ns(m.thread_id);
  m.seat.seen_ns = now;
  m.seat.sample_ns = kSampleMinNs;
}

void sample(M& m, std::int64_t now) {
  const std::int64_t passed = now - m.seat.seen_ns;
  if (passed < m.seat.sample_ns) return;
  const std::int64_t cpu = thread_cpu_ns(m.thread_id);
  m.seat.burning =
      (cpu - m.seat.seen_cpu_ns) * kBurnsOneIn >= passed || thread_is_runnable(m.thread_id, false);
  m.seat.sample_ns = m.seat.burning ? kSampleMinNs : std::min(m.seat.sample_ns * 2, kSampleMaxNs);
  m.seat.seen_cpu_ns = cpu;
  m.seat.seen_ns = now;
}

// How many may compute at once.
std::uint32_t room_for(const Sched& sched) {
  const auto procs = static_cast<std::uint32_t>(sched.procs());
  return sched.grq.size() > 0 ? procs : procs + sched.slice.lane_extra;
}

std::int64_t turn_used_ns(const M& m) { return m.seat.seen_cpu_ns - m.seat.turn_cpu_ns; }

}  // namespace

void Lane::prepare() {
  seats_ = static_cast<M**>(map_pages(sizeof(M*) * Sched::kMaxMs));
  if (seats_ == nullptr) fatal("no memory for the lane");
}

void Lane::arrive(M* m) {
  // It may have left and come back before sysmon has looked: once on the list is enough.
  if (m->arriving.exchange(true, std::memory_order_acq_rel)) return;
  M* first = arrivals_.load(std::memory_order_relaxed);
  do m->arrival_next = first;
  while (!arrivals_.compare_exchange_weak(first, m, std::memory_order_release, std::memory_order_relaxed));
}

void Lane::seat_arrivals(std::int64_t now) {
  M* next = arrivals_.exchange(nullptr, std::memory_order_acquire);
  while (M* m = next) {
    next = m->arrival_next;
    m->arriving.store(false, std::memory_order_release);
    arrived_.fetch_add(1, std::memory_order_relaxed);
    if (m->seat.seated || !runs_without_p(*m)) continue;
    m->seat = LaneSeat{};
    m->seat.seated = true;
    m->seat.since_ns = now;
    begin_turn(*m, now);
    hint_kernel_slice(m->thread_id, kLaneKernelSliceNs);
    // If it has a P again it has hinted for itself, perhaps before us.
    if (!runs_without_p(*m)) hint_kernel_slice(m->thread_id, kWorkerKernelSliceNs);
    seats_[seats_size_++] = m;
  }
}

void Lane::unseat(std::size_t index) {
  M* m = seats_[index];
  PreemptSignal::withdraw(*m);
  m->seat.seated = false;
  seats_[index] = seats_[--seats_size_];
}

void Lane::queue_suspended(M* m) {
  m->seat.next = nullptr;
  (last_ != nullptr ? last_->seat.next : first_) = m;
  last_ = m;
  suspended_.fetch_add(1, std::memory_order_relaxed);
}

// Returns how many compute and have not been asked to stop.
std::uint32_t Lane::look_at_seats(Sched& sched, std::int64_t now) {
  std::uint32_t burning = 0;
  for (std::size_t i = 0; i < seats_size_;) {
    M* m = seats_[i];
    const Suspend state = suspend_of(*m);
    if (state == Suspend::kStopped) {
      queue_suspended(m);
      seats_[i] = seats_[--seats_size_];
      continue;
    }
    if (!runs_without_p(*m)) {
      unseat(i);
      continue;
    }
    if (state == Suspend::kAsked && now - m->seat.asked_ns >= kAnswerNs) PreemptSignal::withdraw(*m);
    sample(*m, now);
    // Its own code begins anew after a blocking call.
    if (m->current.follow()->blocking.get() > 0) m->seat.since_ns = now;
    sched.stalls.consider(sched, *m, m->seat.since_ns, now);
    burning += m->seat.burning && state == Suspend::kRun ? 1 : 0;
    ++i;
  }
  return burning;
}

// Stops those that compute beyond what there is room for, and, if others wait for their turn, those that have
// had theirs.
void Lane::suspend_surplus(Sched& sched, std::uint32_t burning, std::int64_t now) {
  const auto room = room_for(sched);
  std::uint32_t surplus = burning > room ? burning - room : 0;
  for (std::size_t i = 0; i < seats_size_; ++i) {
    M& m = *seats_[i];
    if (!m.seat.burning || suspend_of(m) != Suspend::kRun) continue;
    const bool had_its_turn = first_ != nullptr && turn_used_ns(m) >= kTurnNs;
    if (surplus == 0 && !had_its_turn) continue;
    if (m.current.follow()->no_preempt.get() != 0 || !thread_is_runnable(m.thread_id, true)) continue;
    if (!sched.preempt_signal.ask(m)) return;
    signals_.fetch_add(1, std::memory_order_relaxed);
    m.seat.asked_ns = now;
    if (surplus > 0) --surplus;
  }
}

bool Lane::resume_first(std::int64_t now) {
  M* m = first_;
  if (m == nullptr) return false;
  first_ = std::exchange(m->seat.next, nullptr);
  if (first_ == nullptr) last_ = nullptr;
  suspended_.fetch_sub(1, std::memory_order_relaxed);
  begin_turn(*m, now);
  m->seat.burning = true;
  seats_[seats_size_++] = m;
  PreemptSignal::resume(*m);
  return true;
}

void Lane::look(Sched& sched, std::int64_t now) {
  seat_arrivals(now);
  if (now - looked_ns_ < kLookEveryNs || (seats_size_ == 0 && first_ == nullptr)) return;
  looked_ns_ = now;
  std::uint32_t burning = look_at_seats(sched, now);
  if (!released_ && sched.preempt_signal.works()) suspend_surplus(sched, burning, now);
  // Those that were asked just now are not counted: their places are taken as soon as they are free.
  burning = look_at_seats(sched, now);
  const auto room = room_for(sched);
  while ((burning < room || released_) && resume_first(now)) ++burning;
  burning_.store(burning, std::memory_order_relaxed);
  seated_.store(static_cast<std::uint32_t>(seats_size_), std::memory_order_relaxed);
}

void Lane::release_all() {
  released_ = true;
  seat_arrivals(now_ns());
  for (std::size_t i = 0; i < seats_size_; ++i) {
    M* m = seats_[i];
    PreemptSignal::withdraw(*m);
    // Stopped since the last look, or just before the withdrawal.
    if (suspend_of(*m) == Suspend::kStopped) PreemptSignal::resume(*m);
  }
  while (resume_first(0)) {
  }
}

bool Lane::quiet(const Sched& sched) const {
  if (sched.debug.stalls_ns > 0 && seats_size_ > 0) return false;  // they may become reports
  if (first_ != nullptr || arrivals_.load(std::memory_order_relaxed) != nullptr ||
      seats_size_ > static_cast<std::size_t>(sched.procs())) {
    return false;
  }
  for (std::size_t i = 0; i < seats_size_; ++i) {
    if (suspend_of(*seats_[i]) != Suspend::kRun) return false;  // it will stop, and must be let go on
  }
  return true;
}

Lane::Counts Lane::counts() const {
  return {seated_.load(std::memory_order_relaxed) + suspended_.load(std::memory_order_relaxed),
          burning_.load(std::memory_order_relaxed), suspended_.load(std::memory_order_relaxed),
          arrived_.load(std::memory_order_relaxed), signals_.load(std::memory_order_relaxed)};
}

}  // namespace tuza::rt
