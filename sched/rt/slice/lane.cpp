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

// Samples taken closer together than kSampleMinNs say nothing about CPU use. A thread that waits in the
// kernel is sampled less and less often: there may be thousands.
constexpr std::int64_t kSampleMinNs = 1'500'000;
constexpr std::int64_t kSampleMaxNs = 32'000'000;
// The number of samples in a row that skip /proc, which takes thirty times as long as the CPU clock.
constexpr std::uint32_t kClockOnly = 3;
// Maximum /proc reads per scan, and maximum stop requests per scan. While hundreds of threads want a core,
// sysmon gets no more than its share of one: scanning all of them takes milliseconds, and happened every 30
// ms.
constexpr std::uint32_t kProbes = 32;
// With more threads than that, /proc has been read for all after this many scans
constexpr std::uint32_t kScansOfAll = 32;
constexpr std::int64_t kBurnsOneIn = 20;  // 5 %
// Where /proc cannot tell, a thread that computed so recently is taken to lack a core rather than to wait. Otherwise no
// more threads than there are cores would ever seem to compute.
constexpr std::int64_t kLacksCoreNs = 20'000'000;
// A thundering herd in which nobody waits for the disk is left alone for this long.
constexpr std::int64_t kHerdPauseNs = 20'000'000;
// A stop request without an answer is repeated after this long: the signal may have gone to a handler that
// replaced ours.
constexpr std::int64_t kAnswerNs = 100'000'000;
// Prevents starvation: one resume in this many serves the others, and one the suspects, whichever other
// threads wait.
constexpr std::uint32_t kFairnessInterval = 8;

Suspend suspend_of(const M& m) { return static_cast<Suspend>(m.suspend.load(std::memory_order_acquire)); }

bool runs_without_p(const M& m) { return (m.taken.load(std::memory_order_acquire) & taken::kGone) != 0; }

// An M that has just ended has no thread: its id is 0, which would mean the calling thread.
void hint(const M& m, std::int64_t slice_ns) {
  if (const std::int32_t id = m.thread_id; id != 0) hint_kernel_slice(id, slice_ns);
}

// CPU time used without a P, as of the last sample.
std::int64_t used_ns(const M& m) { return m.seat.seen_cpu_ns - m.gone_cpu_ns.get(); }

void lengthen_kernel_slice(M& m) {
  // Pairs with leave_lane(): one of the two changes of the mark comes first. Either leave_lane() sees the
  // mark and sets the hint itself, or its P is seen here.
  if (m.long_kernel_slice.exchange(true, std::memory_order_acq_rel)) return;
  hint(m, kLaneKernelSliceNs);
  if (!runs_without_p(m)) hint(m, kWorkerKernelSliceNs);
}

void begin_quantum(M& m, std::int64_t now) {
  m.seat.quantum_cpu_ns = m.seat.seen_cpu_ns = thread_cpu_ns(m.cpu_clock);
  m.seat.seen_ns = now;
  m.seat.sample_ns = kSampleMinNs;
  m.seat.waited = m.seat.served = false;
}

// What a sample has found that the seat does not record.
enum class Found : std::uint8_t { kNothing, kNoProbe, kWaiting };

// `exactly`: some thread is suspended, or may have to be. `probes`: the remaining /proc reads of this scan.
Found sample(M& m, bool exactly, std::uint32_t& probes, std::int64_t now) {
  const std::int64_t passed = now - m.seat.seen_ns;
  if (passed < m.seat.sample_ns) return Found::kNothing;
  const std::int64_t cpu = thread_cpu_ns(m.cpu_clock);
  m.seat.served = cpu != m.seat.seen_cpu_ns;
  // A thread that was waiting and has not run since still waits, or was woken and has not got a core yet. The
  // same holds for a thread that computed and lacks a core: it matters only if there are others to run
  // instead.
  const bool same = cpu == m.seat.seen_cpu_ns && m.seat.clock_only < kClockOnly &&
                    (m.seat.burning ? !exactly : m.seat.waited);
  if (same) {
    ++m.seat.clock_only;
  } else {
    const bool much = (cpu - m.seat.seen_cpu_ns) * kBurnsOneIn >= passed;
    if (!much && probes == 0) return Found::kNoProbe;
    if (!much) --probes;
    m.seat.clock_only = 0;
    if (much) m.seat.computed_ns = now;
    m.seat.burning = much || thread_is_runnable(m.thread_id, now - m.seat.computed_ns < kLacksCoreNs);
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
  // The M may have left and come back before sysmon has scanned: once on the list is enough.
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
    begin_quantum(*m, now);
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
  // A thread that computes for a whole quantum has stopped waiting. A thread stopped earlier may still hold
  // what it held before.
  if (m.seat.seen_cpu_ns - m.seat.quantum_cpu_ns >= kQuantumNs) m.seat.waits = m.seat.waited;
  return m.seat.waits && m.stopped_in_code.get() ? suspects_ : others_;
}

// Moves stopped threads to a queue, and removes threads that have a P again.
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

// False if the thread should have been probed, but the scan's /proc reads are used up.
bool Lane::scan_seat(Sched& sched, M& m, bool exactly, std::int64_t now) {
  const Suspend state = suspend_of(m);
  if (state == Suspend::kStopped || !runs_without_p(m)) {  // changed since clear_seats()
    m.seat.burning = false;
    return true;
  }
  if (state == Suspend::kAsked && now - m.seat.asked_ns >= kAnswerNs) PreemptSignal::withdraw(m);
  // Not if the thread is stopped and waits to be resumed.
  const Found found = sample(m, exactly, probes_, now);
  if (found == Found::kWaiting && state == Suspend::kRun && suspend_of(m) == Suspend::kRun) {
    m.seat.waits = m.seat.waited = true;
  }
  // After a blocking call the time in its own code starts anew.
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

// Returns how many threads compute and have not been asked to stop.
std::uint32_t Lane::scan_seats(Sched& sched, std::int64_t now) {
  clear_seats();
  all_wait_ = true;
  unserved_ = settled_ = 0;
  const bool exactly = queued() > 0 || seats_size_ > room_.size();
  std::uint32_t burning = 0, woken = 0;
  std::size_t first_unasked = seats_size_;
  for (std::size_t n = 0; n < seats_size_; ++n) {
    const std::size_t i = (first_seat_ + n) % seats_size_;
    if (!scan_seat(sched, *seats_[i], exactly, now) && first_unasked == seats_size_) first_unasked = i;
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

// Stops the computing threads for which there is no room, those that have used most first, and threads that
// have used their quantum while others wait for one.
void Lane::suspend_surplus(Sched& sched, std::uint32_t burning, std::int64_t now) {
  std::uint32_t asks = kProbes;
  std::uint32_t surplus = burning > room_.size() ? burning - room_.size() : 0;
  std::uint32_t short_quanta = young_.size;
  for (const bool young : {false, true}) {
    for (std::size_t n = 0; n < seats_size_; ++n) {
      const std::size_t i = (first_asked_ + n) % seats_size_;
      M& m = *seats_[i];
      if (!m.seat.burning || suspend_of(m) != Suspend::kRun || (used_ns(m) < kYoungNs) != young) continue;
      const std::int64_t quantum_used = m.seat.seen_cpu_ns - m.seat.quantum_cpu_ns;
      const bool makes_way = short_quanta > 0 && quantum_used >= kYoungQuantumNs;
      const bool used_quantum =
          makes_way || (suspects_.size + others_.size > 0 && quantum_used >= kQuantumNs);
      if ((surplus == 0 && !used_quantum) || m.current.follow()->no_preempt.get() != 0) continue;
      if (asks-- == 0) {
        first_asked_ = i;
        return;
      }
      if (!ask(sched, m, now)) continue;
      if (surplus > 0) --surplus;
      if (makes_way) --short_quanta;
    }
  }
  first_asked_ = 0;
}

// Threads of a thundering herd beyond a limit stop when their read has completed, instead of all running at
// once.
void Lane::suspend_herd(Sched& sched, std::int64_t now) {
  if (!room_.herd_seen(now) || now < herd_scan_at_ns_) return;
  const auto waits = [](const M& m) {
    const G& g = *m.current.follow();
    return !m.seat.burning && m.seat.waits && suspend_of(m) == Suspend::kRun && used_ns(m) >= kYoungNs &&
           g.no_preempt.get() == 0 && g.blocking.get() == 0;
  };
  std::uint32_t surplus = 0;
  for (std::size_t i = 0; i < seats_size_; ++i) surplus += waits(*seats_[i]) ? 1 : 0;
  std::uint32_t probes = kProbes;
  bool any = false;
  for (std::size_t n = 0; n < seats_size_ && surplus > room_.herd_size() && probes > 0; ++n) {
    M& m = *seats_[(first_of_herd_ + n) % seats_size_];
    if (!waits(m)) continue;
    if (--probes == 0) first_of_herd_ = (first_of_herd_ + n + 1) % seats_size_;
    // The result of the last sample stays: these threads are sampled as before.
    if (!thread_waits_for_disk(m.thread_id)) continue;
    any = true;
    if (send(sched, m, now)) {
      m.seat.for_disk = true;
      --surplus;
    }
  }
  if (!any) herd_scan_at_ns_ = now + kHerdPauseNs;  // they wait for something else
}

// False if the thread cannot be stopped, or not now.
bool Lane::ask(Sched& sched, M& m, std::int64_t now) {
  m.seat.seen_cpu_ns = thread_cpu_ns(m.cpu_clock);
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

// Null if all suspended threads were stopped on return from a futex wait. Prefer threads not stopped in disk
// I/O: in a thundering herd those are many, and few of them hold a lock, only those that needed the data, or
// the page, under one.
M* Lane::latest_in_code() {
  for (const bool for_disk : {false, true}) {
    M* latest = nullptr;
    Queue* its = nullptr;
    for (Queue* queue : {&young_, &suspects_, &others_}) {
      M* m = queue->last;  // in the order of their stop sequence numbers
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

M* Lane::next_to_resume() {
  const std::uint32_t turn = resumes_++ % kFairnessInterval;
  if (turn == 0 && others_.size > 0) return others_.pop();
  if (turn == kFairnessInterval / 2 && suspects_.size > 0) return suspects_.pop();
  for (Queue* queue : {&young_, &suspects_}) {
    if (queue->size > 0) return queue->pop();
  }
  return others_.pop();
}

bool Lane::resume_next(std::int64_t now, bool all_wait) {
  // Only every other time: otherwise a thread that computes for less than a quantum and waits again would
  // always be chosen.
  latest_next_ = all_wait && !latest_next_;
  M* m = latest_next_ ? latest_in_code() : nullptr;
  if (m == nullptr) m = next_to_resume();
  if (m == nullptr) return false;
  resume(*m, now);
  return true;
}

// `m` has been taken off its queue of suspended threads.
void Lane::resume(M& m, std::int64_t now) {
  suspended_.fetch_sub(1, std::memory_order_relaxed);
  queued_marked_ -= m.seat.marked ? 1 : 0;
  begin_quantum(m, now);
  m.seat.burning = true;
  m.seat.computed_ns = now;
  seats_[seats_size_++] = &m;
  PreemptSignal::resume(m);
}

void Lane::scan(Sched& sched, std::int64_t now) {
  seat_arrivals(now);
  if (const std::int32_t forking = forking_thread(); forking != 0) help_fork(sched, forking, now);
  if (now - scanned_ns_ < kScanIntervalNs || (seats_size_ == 0 && queued() == 0)) return;
  scanned_ns_ = now;
  probes_ = std::max(kProbes, static_cast<std::uint32_t>(seats_size_) / kScansOfAll);
  room_.set(static_cast<std::uint32_t>(sched.procs()), sched.slice.lane_extra, sched.grq.size() > 0);
  std::uint32_t burning = scan_seats(sched, now);
  // Read this before any thread is asked to stop: the last of those would become the one that was stopped
  // last.
  const bool all_waited = all_wait_;
  const bool stops = sched.preempt_signal.works();
  if (stops) {
    suspend_surplus(sched, burning, now);
    suspend_herd(sched, now);
  }
  // Threads that were asked just now are not counted: others take their places at once.
  burning = scan_seats(sched, now);
  // If no signal works any more, no thread would ever make room.
  std::uint32_t more = stops ? room_.left(burning, unserved_, now) : queued();
  while (more-- > 0 && resume_next(now, all_waited && all_wait_ && burning == 0)) ++burning;
  burning_.store(burning, std::memory_order_relaxed);
  seated_.store(static_cast<std::uint32_t>(seats_size_), std::memory_order_relaxed);
  stalled_.store(static_cast<std::uint32_t>(seats_size_) + queued() - settled_ - queued_marked_,
                 std::memory_order_relaxed);
}

// The forking thread waits for a lock: that of one M's malloc arena, which that M probably holds, or any
// other lock.
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
      resume(m, now);
    }
  }
  if (!known) resume_all(now);
}

void Lane::resume_all(std::int64_t now) {
  for (std::size_t i = 0; i < seats_size_; ++i) {
    M* m = seats_[i];
    PreemptSignal::withdraw(*m);
    // It stopped after the last scan, or just before the withdrawal.
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
  resume_all(0);
}

bool Lane::harmless(const Sched& sched) const {
  return seats_size_ <= static_cast<std::size_t>(sched.procs());
}

bool Lane::waits(const Sched& sched) const {
  if (sched.debug.stalls_ns > 0 && seats_size_ > 0) return false;  // they may have to be reported
  if (queued() > 0 || arrivals_.load(std::memory_order_relaxed) != nullptr) return false;
  const bool harmless_here = harmless(sched);
  for (std::size_t i = 0; i < seats_size_; ++i) {
    if (suspend_of(*seats_[i]) != Suspend::kRun) return false;  // it will stop, and must be resumed
    if (!harmless_here && (seats_[i]->seat.burning || !seats_[i]->seat.waited)) return false;
  }
  return true;
}

Lane::Counts Lane::counts() const {
  return {seated_.load(std::memory_order_relaxed) + suspended_.load(std::memory_order_relaxed),
          burning_.load(std::memory_order_relaxed), suspended_.load(std::memory_order_relaxed),
          arrived_.load(std::memory_order_relaxed), signals_.load(std::memory_order_relaxed)};
}

}  // namespace tuza::rt
