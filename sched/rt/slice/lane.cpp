#include <tuza/sched/rt/slice/lane.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/kernel_slice.h>
#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/base/thread_cpu.h>
#include <tuza/sched/rt/base/thread_state.h>
#include <tuza/sched/rt/idle/malloc_arenas.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/preempt_signal.h>

#include <algorithm>
#include <utility>

namespace tuza::rt {
namespace {

// Looks that are closer together say nothing about CPU use. A thread that waits in the kernel is looked at
// less and less often: there may be thousands.
constexpr std::int64_t kSampleMinNs = 1'500'000;
constexpr std::int64_t kSampleMaxNs = 32'000'000;
// So many looks in a row do without /proc, which takes thirty times as long as the clock.
constexpr std::uint32_t kClockOnly = 3;
// So often is /proc asked in one look, and so many are asked to stop. Where hundreds want a core sysmon gets no
// more than its share of one: looking at all of them takes milliseconds, and was done every 30 ms.
constexpr std::uint32_t kProbes = 32;
constexpr std::uint32_t kLooksAtAll = 32;  // all have been asked about after so many looks, if there are more
constexpr std::int64_t kBurnsOneIn = 20;   // 5 %
// A crowd of which nobody waits for the disk is left alone for so long.
constexpr std::int64_t kCrowdPauseNs = 20'000'000;
// Who has not answered for so long is asked again: its signal may have gone to a handler that replaced ours.
constexpr std::int64_t kAnswerNs = 100'000'000;
// So that no queue starves: one turn in so many is of the others, and one of the suspects, whoever else waits.
constexpr std::uint32_t kOthersOneTurnIn = 8;

Suspend suspend_of(const M& m) { return static_cast<Suspend>(m.suspend.load(std::memory_order_acquire)); }

bool runs_without_p(const M& m) { return (m.taken.load(std::memory_order_acquire) & taken::kGone) != 0; }

// An M that has just ended has no thread any more: 0 would be the caller's.
void hint(const M& m, std::int64_t slice_ns) {
  if (const std::int32_t id = m.thread_id; id != 0) hint_kernel_slice(id, slice_ns);
}

// CPU time without a P, as of the last look.
std::int64_t used_ns(const M& m) { return m.seat.seen_cpu_ns - m.gone_cpu_ns.get(); }

void lengthen_kernel_slice(M& m) {
  // With leave_lane(): of the two changes of the mark one is the first. Either it sees the mark and hints for
  // itself, or its P is seen here.
  if (m.long_kernel_slice.exchange(true, std::memory_order_acq_rel)) return;
  hint(m, kLaneKernelSliceNs);
  if (!runs_without_p(m)) hint(m, kWorkerKernelSliceNs);
}

void begin_turn(M& m, std::int64_t now) {
  m.seat.turn_cpu_ns = m.seat.seen_cpu_ns = thread_cpu_ns(m.thread_id);
  m.seat.seen_ns = now;
  m.seat.sample_ns = kSampleMinNs;
  m.seat.waited = m.seat.served = false;
}

// What a look at a thread has found that the seat does not say.
enum class Found : std::uint8_t { kNothing, kNoProbe, kWaiting };

// `exactly`: somebody is suspended, or may have to be. `probes`: so often /proc may still be asked in this look.
Found sample(M& m, bool exactly, std::uint32_t& probes, std::int64_t now) {
  const std::int64_t passed = now - m.seat.seen_ns;
  if (passed < m.seat.sample_ns) return Found::kNothing;
  const std::int64_t cpu = thread_cpu_ns(m.thread_id);
  m.seat.served = cpu != m.seat.seen_cpu_ns;
  // Who was waiting and has not run since waits still; or it was woken, and has not got a core yet.
  // The same of who computed and lacks a core: that matters only where there are others to run instead.
  const bool same = cpu == m.seat.seen_cpu_ns && m.seat.clock_only < kClockOnly &&
                    (m.seat.burning ? !exactly : m.seat.waited);
  if (same) {
    ++m.seat.clock_only;
  } else {
    const bool much = (cpu - m.seat.seen_cpu_ns) * kBurnsOneIn >= passed;
    if (!much && probes == 0) return Found::kNoProbe;
    if (!much) --probes;
    m.seat.clock_only = 0;
    m.seat.burning = much || thread_is_runnable(m.thread_id, false);
  }
  m.seat.sample_ns = m.seat.burning ? kSampleMinNs : std::min(m.seat.sample_ns * 2, kSampleMaxNs);
  m.seat.seen_cpu_ns = cpu;
  m.seat.seen_ns = now;
  if (used_ns(m) >= Lane::kGraceNs) lengthen_kernel_slice(m);
  return m.seat.burning ? Found::kNothing : Found::kWaiting;
}

}  // namespace

Lane::~Lane() { unmap_pages(seats_, sizeof(M*) * Sched::kMaxMs); }

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
    seats_[seats_size_++] = m;
  }
}

void Lane::unseat(std::size_t index) {
  M* m = seats_[index];
  PreemptSignal::withdraw(*m);
  m->seat.seated = false;
  seats_[index] = seats_[--seats_size_];
}

void Lane::Queue::push(M* m) {
  m->seat.queue = this;
  m->seat.next = nullptr;
  m->seat.previous = last;
  (last != nullptr ? last->seat.next : first) = m;
  last = m;
  ++size;
}

void Lane::Queue::remove(M* m) {
  m->seat.queue = nullptr;
  (m->seat.previous != nullptr ? m->seat.previous->seat.next : first) = m->seat.next;
  (m->seat.next != nullptr ? m->seat.next->seat.previous : last) = m->seat.previous;
  --size;
}

M* Lane::Queue::pop() {
  M* m = first;
  if (m != nullptr) remove(m);
  return m;
}

Lane::Queue& Lane::queue_for(M& m) {
  if (used_ns(m) < kYoungNs) return young_;
  // Who computes for a whole turn has stopped waiting. Who was cut short may hold what it held before.
  if (m.seat.seen_cpu_ns - m.seat.turn_cpu_ns >= kTurnNs) m.seat.waits = m.seat.waited;
  return m.seat.waits && m.stopped_in_code.get() ? suspects_ : others_;
}

// Who has stopped goes to the queue, who has a P again leaves.
void Lane::clear_seats() {
  for (std::size_t i = 0; i < seats_size_;) {
    M* m = seats_[i];
    if (suspend_of(*m) == Suspend::kStopped) {
      m->seat.stop = ++stops_;
      m->seat.marked = m->current.follow()->blocking.get() > 0;
      queued_marked_ += m->seat.marked ? 1 : 0;
      queue_for(*m).push(m);
      suspended_.fetch_add(1, std::memory_order_relaxed);
      seats_[i] = seats_[--seats_size_];
    } else if (!runs_without_p(*m)) {
      unseat(i);
    } else {
      ++i;
    }
  }
}

// False if it should have been asked about, but not in this look.
bool Lane::look_at_seat(Sched& sched, M& m, bool exactly, std::int64_t now) {
  const Suspend state = suspend_of(m);
  if (state == Suspend::kStopped || !runs_without_p(m)) {  // since clear_seats()
    m.seat.burning = false;
    return true;
  }
  if (state == Suspend::kAsked && now - m.seat.asked_ns >= kAnswerNs) PreemptSignal::withdraw(m);
  // Not where it waits to be resumed.
  const Found found = sample(m, exactly, probes_, now);
  if (found == Found::kWaiting && state == Suspend::kRun && suspend_of(m) == Suspend::kRun) {
    m.seat.waits = m.seat.waited = true;
  }
  // Its own code begins anew after a blocking call.
  if (m.current.follow()->blocking.get() > 0) {
    m.seat.since_ns = now;
    ++settled_;
  } else if (!m.seat.burning && m.seat.sample_ns >= kSampleMaxNs) {
    ++settled_;
  }
  sched.stalls.consider(sched, m, m.seat.since_ns, now);
  all_wait_ = all_wait_ && !m.seat.burning;
  return found != Found::kNoProbe;
}

// Returns how many compute and have not been asked to stop.
std::uint32_t Lane::look_at_seats(Sched& sched, std::int64_t now) {
  clear_seats();
  all_wait_ = true;
  unserved_ = settled_ = 0;
  const bool exactly = queued() > 0 || seats_size_ > room_.size();
  std::uint32_t burning = 0, woken = 0;
  std::size_t first_unasked = seats_size_;
  for (std::size_t n = 0; n < seats_size_; ++n) {
    const std::size_t i = (first_seat_ + n) % seats_size_;
    if (!look_at_seat(sched, *seats_[i], exactly, now) && first_unasked == seats_size_) first_unasked = i;
    if (const M& m = *seats_[i]; m.seat.burning && suspend_of(m) == Suspend::kRun) {
      ++burning;
      woken += m.seat.waits ? 1 : 0;
      unserved_ += m.seat.served ? 0 : 1;
    }
  }
  if (first_unasked != seats_size_) first_seat_ = first_unasked;
  room_.note_woken(woken, now);
  return burning;
}

// Stops those that compute beyond what there is room for, those first that have used most, and those that
// have had their turn while others wait for it.
void Lane::suspend_surplus(Sched& sched, std::uint32_t burning, std::int64_t now) {
  std::uint32_t asks = kProbes;
  std::uint32_t surplus = burning > room_.size() ? burning - room_.size() : 0;
  std::uint32_t short_turns = young_.size;
  for (const bool young : {false, true}) {
    for (std::size_t n = 0; n < seats_size_; ++n) {
      const std::size_t i = (first_asked_ + n) % seats_size_;
      M& m = *seats_[i];
      if (!m.seat.burning || suspend_of(m) != Suspend::kRun || (used_ns(m) < kYoungNs) != young) continue;
      const std::int64_t turn_used = m.seat.seen_cpu_ns - m.seat.turn_cpu_ns;
      const bool makes_way = short_turns > 0 && turn_used >= kYoungTurnNs;
      const bool had_its_turn = makes_way || (suspects_.size + others_.size > 0 && turn_used >= kTurnNs);
      if ((surplus == 0 && !had_its_turn) || m.current.follow()->no_preempt.get() != 0) continue;
      if (asks-- == 0) {
        first_asked_ = i;
        return;
      }
      if (!ask(sched, m, now)) continue;
      if (surplus > 0) --surplus;
      if (makes_way) --short_turns;
    }
  }
  first_asked_ = 0;
}

// Those of a crowd beyond some stop when what they read has come, rather than all go on at once then.
void Lane::suspend_crowd(Sched& sched, std::int64_t now) {
  if (!room_.crowded(now) || now < crowd_looks_at_ns_) return;
  const auto waits = [](const M& m) {
    const G& g = *m.current.follow();
    return !m.seat.burning && m.seat.waits && suspend_of(m) == Suspend::kRun && used_ns(m) >= kYoungNs &&
           g.no_preempt.get() == 0 && g.blocking.get() == 0;
  };
  std::uint32_t surplus = 0;
  for (std::size_t i = 0; i < seats_size_; ++i) surplus += waits(*seats_[i]) ? 1 : 0;
  std::uint32_t probes = kProbes;
  bool any = false;
  for (std::size_t n = 0; n < seats_size_ && surplus > room_.crowd_size() && probes > 0; ++n) {
    M& m = *seats_[(first_of_crowd_ + n) % seats_size_];
    if (!waits(m)) continue;
    if (--probes == 0) first_of_crowd_ = (first_of_crowd_ + n + 1) % seats_size_;
    // What the last sample has seen stays: these are sampled as before.
    if (!thread_waits_for_disk(m.thread_id)) continue;
    any = true;
    if (send(sched, m, now)) {
      m.seat.for_disk = true;
      --surplus;
    }
  }
  if (!any) crowd_looks_at_ns_ = now + kCrowdPauseNs;  // they wait for something else
}

// False if it cannot be stopped, or not now.
bool Lane::ask(Sched& sched, M& m, std::int64_t now) {
  m.seat.seen_cpu_ns = thread_cpu_ns(m.thread_id);
  m.seat.seen_ns = now;
  if (used_ns(m) < kGraceNs || !thread_is_runnable(m.thread_id, true) || !send(sched, m, now)) return false;
  m.seat.for_disk = false;
  return true;
}

bool Lane::send(Sched& sched, M& m, std::int64_t now) {
  if (!sched.preempt_signal.ask(m)) return false;
  signals_.fetch_add(1, std::memory_order_relaxed);
  m.seat.asked_ns = now;
  return true;
}

// Null if all were stopped at a futex. Those that were stopped when they came from the disk are the last choice: in a
// crowd they are many, and few of them have a lock: those whose read, or page, was needed under one.
M* Lane::latest_in_code() {
  for (const bool for_disk : {false, true}) {
    M* latest = nullptr;
    Queue* its = nullptr;
    for (Queue* queue : {&young_, &suspects_, &others_}) {
      M* m = queue->last;  // in the order of their stops
      while (m != nullptr && (!m->stopped_in_code.get() || m->seat.for_disk != for_disk))
        m = m->seat.previous;
      if (m == nullptr || (latest != nullptr && m->seat.stop < latest->seat.stop)) continue;
      latest = m;
      its = queue;
    }
    if (latest == nullptr) continue;
    its->remove(latest);
    return latest;
  }
  return nullptr;
}

M* Lane::next_in_turn() {
  const std::uint32_t turn = turns_++ % kOthersOneTurnIn;
  if (turn == 0 && others_.size > 0) return others_.pop();
  if (turn == kOthersOneTurnIn / 2 && suspects_.size > 0) return suspects_.pop();
  for (Queue* queue : {&young_, &suspects_}) {
    if (queue->size > 0) return queue->pop();
  }
  return others_.pop();
}

bool Lane::resume_next(std::int64_t now, bool all_wait) {
  // Every other time only: one that computes for less than a turn and waits again would always be it.
  latest_next_ = all_wait && !latest_next_;
  M* m = latest_next_ ? latest_in_code() : nullptr;
  if (m == nullptr) m = next_in_turn();
  if (m == nullptr) return false;
  let_go_on(*m, now);
  return true;
}

// `m` has been taken off the queue of the suspended.
void Lane::let_go_on(M& m, std::int64_t now) {
  suspended_.fetch_sub(1, std::memory_order_relaxed);
  queued_marked_ -= m.seat.marked ? 1 : 0;
  begin_turn(m, now);
  m.seat.burning = true;
  seats_[seats_size_++] = &m;
  PreemptSignal::resume(m);
}

void Lane::look(Sched& sched, std::int64_t now) {
  seat_arrivals(now);
  if (const std::int32_t forking = forking_thread(); forking != 0) help_fork(sched, forking, now);
  if (now - looked_ns_ < kLookEveryNs || (seats_size_ == 0 && queued() == 0)) return;
  looked_ns_ = now;
  probes_ = std::max(kProbes, static_cast<std::uint32_t>(seats_size_) / kLooksAtAll);
  room_.set(static_cast<std::uint32_t>(sched.procs()), sched.slice.lane_extra, sched.grq.size() > 0);
  std::uint32_t burning = look_at_seats(sched, now);
  // Before some are asked to stop: of these the last would be the latest that was stopped.
  const bool all_waited = all_wait_;
  const bool stops = sched.preempt_signal.works();
  if (stops) {
    suspend_surplus(sched, burning, now);
    suspend_crowd(sched, now);
  }
  // Those that were asked just now are not counted: others have their places at once.
  burning = look_at_seats(sched, now);
  // Where no signal works any more nobody would ever make room.
  std::uint32_t more = stops ? room_.left(burning, unserved_, now) : queued();
  while (more-- > 0 && resume_next(now, all_waited && all_wait_ && burning == 0)) ++burning;
  burning_.store(burning, std::memory_order_relaxed);
  seated_.store(static_cast<std::uint32_t>(seats_size_), std::memory_order_relaxed);
  stalled_.store(static_cast<std::uint32_t>(seats_size_) + queued() - settled_ - queued_marked_,
                 std::memory_order_relaxed);
}

// It waits for a lock: of the arena of one M, which is probably the holder, or of whomever.
void Lane::help_fork(Sched& sched, std::int32_t forking_thread, std::int64_t now) {
  const std::uintptr_t lock = futex_waited_for(forking_thread);
  if (lock == 0) return;
  clear_seats();
  bool known = false;
  for (std::uint32_t i = 0, n = sched.ms_made.load(std::memory_order_acquire); i < n; ++i) {
    M& m = sched.ms[i];
    if (!in_arena(lock, m.arena.get())) continue;
    known = true;
    if (auto* queue = static_cast<Queue*>(m.seat.queue); queue != nullptr) {
      queue->remove(&m);
      let_go_on(m, now);
    }
  }
  if (!known) let_all_go_on(now);
}

void Lane::let_all_go_on(std::int64_t now) {
  for (std::size_t i = 0; i < seats_size_; ++i) {
    M* m = seats_[i];
    PreemptSignal::withdraw(*m);
    // Stopped since the last look, or just before the withdrawal.
    if (suspend_of(*m) == Suspend::kStopped) PreemptSignal::resume(*m);
  }
  while (resume_next(now, false)) {
  }
}

void Lane::release_all() {
  seat_arrivals(now_ns());
  for (std::size_t i = 0; i < seats_size_; ++i) hint(*seats_[i], kWorkerKernelSliceNs);
  for (const Queue* queue : {&young_, &suspects_, &others_}) {
    for (M* m = queue->first; m != nullptr; m = m->seat.next) hint(*m, kWorkerKernelSliceNs);
  }
  let_all_go_on(0);
}

bool Lane::quiet(const Sched& sched) const {
  if (sched.debug.stalls_ns > 0 && seats_size_ > 0) return false;  // they may become reports
  if (queued() > 0 || arrivals_.load(std::memory_order_relaxed) != nullptr ||
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
