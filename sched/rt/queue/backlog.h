// The backlog of goroutines that stall: while it lasts, later wake-ups overtake the backlog.
//
// Suppose that a thousand requests arrive at once, and each computes. No request can be told from a short one
// before it runs, and each keeps its P until sysmon takes it: 1 to 2.5 ms. A goroutine that is woken
// meanwhile, by a timer or for an answer that takes a microsecond, would wait behind all of them for seconds.
// Once some dozens of goroutines have lost their Ps and still run without one, the next are likely to stall
// as well. From then on goroutines that are woken, or readied by others, queue on a level of their own
// (Level::kLatecomer) and go first; every eighth pick takes from the goroutines that were there before. If
// the latecomers turn out to stall as well, they join the others, and goroutines woken after them are the new
// latecomers. (Serving the newest first where a queue is overloaded: Maurer, "Fail at Scale", ACM Queue 2015,
// which calls it adaptive LIFO. Here each of the two groups keeps its order.)
//
// A service whose requests all compute for a millisecond or two does not count as a backlog, however many
// requests wait: each request is soon done, and few are without a P at any moment.
//
// Some goroutines were woken, and queued, before the backlog was detected. Those among them that have waited
// often without ever having stalled since (a ticker, a connection that has been served several times) also
// become latecomers, and never join the others.
//
// The backlog ends when, for a while, no goroutine has stalled while many were without a P and many waited.
// All goroutines then queue in one order again.
//
// Owner: sysmon, except where a comment says otherwise.
#pragma once

#include <tuza/sched/rt/base/relaxed.h>
#include <tuza/sched/rt/queue/global_queues.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct P;
struct Sched;

class Backlog {
 public:
  // -- For any thread; the answers may be stale.
  [[nodiscard]] bool lasts() const { return lasts_.load(std::memory_order_relaxed); }
  // The level on which a goroutine queues that is woken now.
  [[nodiscard]] Level level_of_woken() const { return lasts() ? Level::kLatecomer : Level::kWoken; }

  // The number of backlogs so far.
  [[nodiscard]] std::uint32_t number() const { return number_; }

  // Sysmon took a P from a goroutine that had not announced that it would block. `latecomer`: the goroutine
  // was a latecomer. `outside` goroutines already run without a P; `waiting` are queued.
  void note_stall(bool latecomer, std::uint32_t outside, std::uint32_t waiting, std::int64_t now) {
    if (outside >= kThreshold && waiting >= kThreshold) until_ns_ = now + kLastsNs;
    stalled_latecomers_ += latecomer ? 1 : 0;
  }

  // What the caller must do with the queued goroutines.
  enum class Do : std::uint8_t {
    kNothing,
    kFavourProven,  // the backlog begins: goroutines that have proven to be short become latecomers
    kJoin,          // latecomers that have not proven to be short join the goroutines that were there before
    kEnd,           // the backlog is over: all latecomers join the others
  };
  // Called in each scan, with the number of queued latecomers.
  [[nodiscard]] Do scan(std::uint32_t latecomers, std::int64_t now) {
    const bool lasted = lasts(), now_lasts = now < until_ns_;
    if (now_lasts != lasted) lasts_.store(now_lasts, std::memory_order_relaxed);
    if (stalled_latecomers_ != 0 && (!now_lasts || latecomers == 0)) stalled_latecomers_ = 0;
    if (!now_lasts) return latecomers > 0 ? Do::kEnd : Do::kNothing;  // some may queue after the end
    if (!lasted) {
      ++number_;
      return Do::kFavourProven;
    }
    if (stalled_latecomers_ < kStalled || latecomers < kThreshold) return Do::kNothing;
    stalled_latecomers_ = 0;
    return Do::kJoin;
  }

  static constexpr std::uint32_t kThreshold = 32;  // goroutines without a P, and goroutines that wait
  static constexpr std::uint32_t kStalled = 16;    // latecomers
  static constexpr std::int64_t kLastsNs = 100'000'000;
  static constexpr std::uint32_t kProvenWaits = 8;

 private:
  std::atomic<bool> lasts_{false};
  Relaxed<std::uint32_t> number_{0};
  std::int64_t until_ns_ = 0;
  std::uint32_t stalled_latecomers_ = 0;
};

// For sysmon, in each round: applies the decision of Backlog::scan() to the GRQ.
void update_backlog(Sched& sched, std::int64_t now);

// For the M that holds `p`, once per backlog: turns the goroutines of its LRQ that have proven to be short
// into latecomers.
void favour_proven(Sched& sched, P& p);

}  // namespace tuza::rt
