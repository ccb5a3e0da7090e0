// The lane: goroutines that run without a P, on their own threads. Who may use a core, and in turn.
//
// Sysmon has taken their Ps because they did not come back (rt/slice/handoff.h), or they are in a blocking call
// that was known to be long. Most wait in the kernel and cost nothing: they are left alone, so that none of
// their system calls is interrupted (but see the crowd, below). Those that compute would, if there are many, leave no core for the Ms
// with a P: so only a few more than there are Ps compute at once, and the surplus is suspended on the spot
// (rt/slice/preempt_signal.h). Those few more matter for throughput: a holder of malloc's lock or of a stream's
// that is suspended keeps others waiting, and where more may compute it seldom is. While goroutines wait for
// a P only as many compute as there are Ps, or those with a P would get too small a share of the cores.
//
// The suspended wait in a queue; when the lane has room, or one that computes has had kTurnNs of CPU time,
// the first of them goes on. It gets no P by that: Ps are for those that answer.
//
// A goroutine may have lost its P by bad luck: the kernel had its core for somebody else, or a page had to be
// read. It has microseconds to go, and behind a thousand that compute its turn comes after many seconds. So
// nobody is stopped, or given long kernel slices, before it has used kGraceNs of CPU without a P; and who has
// used less than kYoungNs waits in a queue of its own, which is served first, with short turns: after one it is
// young no more. Every eighth turn is of the others nevertheless.
//
// Who was seen waiting in the kernel may use locks, and may hold one if it was stopped in the middle of its
// code, rather than where it came from a futex, as somebody does who was woken to try for a lock. Such
// suspects wait in a queue of their own as well, before the others, until they have computed for a whole turn;
// every eighth turn is one of theirs where young ones wait.
//
// Where nobody computes, though some are suspended, all others probably wait for a lock of the one that was
// stopped last in its own code: it goes on first. (Every other time; and one for each P, not as many as there
// is room for.) In its turn it would come after all others, each of which would go on, wait for the lock, and
// be suspended no more: a thousand that print to one stream then woke each other, all wanted a core at once,
// neither the Ms nor sysmon got more than a thousandth of one, and `/` was a quarter of a second late.
//
// Of a crowd that waits for the disk those beyond two for each that may compute are asked to stop while they wait: the
// signal does not disturb the call, and they stop when it has ended, rather than go on all at once. Only who has used
// more than kYoungNs without a P: what a goroutine reads now and then is not delayed.
//
// A thread computes if its CPU clock says that it used 5 % of the time since the last look, or if /proc says
// that it runs or waits for a core: with a hundred of them on two cores, most use no CPU for long stretches.
// Of one that waited and has not used any since /proc is asked at every fourth look only, and not of more than a
// few dozen in one look. Where there is room for all, the same is done of those that computed.
// Just before a signal is sent to one that computes /proc must say so in any case: a system call that waits would be interrupted.
//
// Owner: sysmon, but for arrive(). Between M and sysmon there is only M::taken, M::suspend with
// M::stopped_in_code, and the list of arrivals.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/slice/lane_room.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::rt {

struct Sched;

class Lane {
 public:
  Lane() = default;
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Before anybody arrives.
  void prepare();

  // `m` runs a goroutine without a P from now on. Any thread. Does not block.
  void arrive(M* m);

  // Looks at everybody: counts, suspends, resumes. Does nothing more often than every kLookEveryNs.
  void look(Sched& sched, std::int64_t now);
  // Lets all that are suspended go on; nobody is suspended after that. At the end of the runtime: what they
  // hold (malloc's lock) is needed by those that end it. With the slices they had in the lane (20 ms) a round of
  // a thousand took ten seconds, for each lock of the kernel's that one of them holds: they get short ones.
  void release_all();

  // Nothing to do here: nobody is suspended or asked, and there are too few to do harm, or to be reported.
  [[nodiscard]] bool quiet(const Sched& sched) const;

  // For reports; any thread.
  struct Counts {
    std::uint32_t seated;     // run without a P, or are suspended
    std::uint32_t burning;    // compute
    std::uint32_t suspended;  // were stopped
    std::uint64_t arrived;    // so far
    std::uint64_t signals;    // sent so far
  };
  [[nodiscard]] Counts counts() const;
  // How many have lost their Ps lately in calls that nobody marked, or without any, or compute.
  [[nodiscard]] std::uint32_t stalled() const { return stalled_.load(std::memory_order_relaxed); }

  static constexpr std::int64_t kLookEveryNs = 2'000'000;
  static constexpr std::int64_t kTurnNs = 40'000'000;
  static constexpr std::int64_t kYoungTurnNs = 2'000'000;  // while young ones wait
  static constexpr std::int64_t kGraceNs = 250'000;
  static constexpr std::int64_t kYoungNs = 2'000'000;

 private:
  // The suspended, in the order of their turns.
  struct Queue {
    M* first = nullptr;
    M* last = nullptr;
    std::uint32_t size = 0;
    void push(M* m);
    M* pop();
    void remove(M* m);
  };

  void help_fork(Sched& sched, std::int32_t forking_thread, std::int64_t now);
  void let_go_on(M& m, std::int64_t now);
  void let_all_go_on(std::int64_t now);
  void seat_arrivals(std::int64_t now);
  void clear_seats();
  bool look_at_seat(Sched& sched, M& m, bool exactly, std::int64_t now);
  std::uint32_t look_at_seats(Sched& sched, std::int64_t now);
  void suspend_surplus(Sched& sched, std::uint32_t burning, std::int64_t now);
  void suspend_crowd(Sched& sched, std::int64_t now);
  bool ask(Sched& sched, M& m, std::int64_t now);
  bool send(Sched& sched, M& m, std::int64_t now);
  bool resume_next(std::int64_t now, bool all_wait);
  void unseat(std::size_t index);
  Queue& queue_for(M& m);
  M* next_in_turn();
  M* latest_in_code();
  [[nodiscard]] std::uint32_t queued() const { return young_.size + suspects_.size + others_.size; }

  std::atomic<M*> arrivals_{nullptr};
  M** seats_ = nullptr;  // those not in the queue
  std::size_t seats_size_ = 0;
  std::size_t first_seat_ = 0;  // where the next look begins
  std::size_t first_of_crowd_ = 0;
  std::int64_t crowd_looks_at_ns_ = 0;
  std::size_t first_asked_ = 0;  // and where it begins to stop some
  std::uint32_t probes_ = 0;     // so often may /proc still be asked in this look
  LaneRoom room_;
  Queue young_, suspects_, others_;
  std::uint32_t turns_ = 0;
  std::uint64_t stops_ = 0;
  std::int64_t looked_ns_ = 0;
  std::uint32_t unserved_ = 0;       // of those that compute: have had no core since the look before
  bool all_wait_ = false;            // nobody computes, not even one that was asked to stop
  bool latest_next_ = false;         // resume_next() has taken the one that was stopped last
  std::uint32_t settled_ = 0;        // of those seated: in calls that were marked, or waiting for long
  std::uint32_t queued_marked_ = 0;  // of the suspended: in calls that were marked
  std::atomic<std::uint32_t> seated_{0}, burning_{0}, suspended_{0}, stalled_{0};
  std::atomic<std::uint64_t> arrived_{0}, signals_{0};
};

}  // namespace tuza::rt
