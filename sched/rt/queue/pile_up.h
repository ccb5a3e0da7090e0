// Goroutines that stall have piled up: who was woken later goes before those that wait.
//
// A thousand requests arrive at once, and each computes. Nobody can tell before it runs, and each keeps its P until
// sysmon takes it: 1 to 2.5 ms. Whoever is woken meanwhile, by a timer or for an answer of a microsecond, would wait
// behind all of them for seconds. Once some dozens have lost their Ps and are still without, the next are likely to
// stall as well. From then on those that are woken, or readied by others, queue on a level of their own (Level::kLatecomer), and go first;
// every eighth pick is of those that were there before. If they turn out to be such goroutines themselves they join
// the others, and who comes after them is a latecomer. (Serving the newest first where a queue is overloaded: Maurer,
// "Fail at Scale", ACM Queue 2015, which calls it adaptive LIFO. Here order is kept within each of the two.)
//
// A service whose requests all compute for a millisecond or two is not taken for this, however many wait: they are
// soon done, and few are without a P at any moment.
//
// Some were woken, and queued, before it was seen that there is a pile-up. Those that have waited often without ever
// having stalled since (a ticker, a connection that has been served some times) are latecomers, too, and never join
// the others.
//
// When for a while nobody has stalled while so many are without a P and wait, it is over, and all queue in one order
// again.
//
// Owner: sysmon, but for what is said to be for others.
#pragma once

#include <tuza/sched/rt/base/relaxed.h>
#include <tuza/sched/rt/queue/global_queues.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct P;
struct Sched;

class PileUp {
 public:
  // -- For any thread; what they say may be old.
  [[nodiscard]] bool lasts() const { return lasts_.load(std::memory_order_relaxed); }
  // Where a goroutine queues that is woken now.
  [[nodiscard]] Level level_of_woken() const { return lasts() ? Level::kLatecomer : Level::kWoken; }

  // How many there have been.
  [[nodiscard]] std::uint32_t number() const { return number_; }

  // A P was taken from a goroutine that had not said that it would block. `latecomer`: it was one. `outside` are
  // without a P already, `waiting` are queued.
  void note_stall(bool latecomer, std::uint32_t outside, std::uint32_t waiting, std::int64_t now) {
    if (outside >= kPile && waiting >= kPile) until_ns_ = now + kLastsNs;
    stalled_latecomers_ += latecomer ? 1 : 0;
  }

  // What has to be done with those that are queued.
  enum class Do : std::uint8_t {
    kNothing,
    kFavourProven,  // it begins: those that have proven to be short become latecomers
    kJoin,          // latecomers that have not join those that were there before
    kEnd,           // there are no latecomers any more
  };
  // In each look, with the number of latecomers queued.
  [[nodiscard]] Do look(std::uint32_t latecomers, std::int64_t now) {
    const bool lasted = lasts(), now_lasts = now < until_ns_;
    if (now_lasts != lasted) lasts_.store(now_lasts, std::memory_order_relaxed);
    if (stalled_latecomers_ != 0 && (!now_lasts || latecomers == 0)) stalled_latecomers_ = 0;
    if (!now_lasts) return latecomers > 0 ? Do::kEnd : Do::kNothing;  // some may have come after it had ended
    if (!lasted) {
      ++number_;
      return Do::kFavourProven;
    }
    if (stalled_latecomers_ < kStalled || latecomers < kPile) return Do::kNothing;
    stalled_latecomers_ = 0;
    return Do::kJoin;
  }

  static constexpr std::uint32_t kPile = 32;
  static constexpr std::uint32_t kStalled = 16;
  static constexpr std::int64_t kLastsNs = 100'000'000;
  static constexpr std::uint32_t kProvenWaits = 8;

 private:
  std::atomic<bool> lasts_{false};
  Relaxed<std::uint32_t> number_{0};
  std::int64_t until_ns_ = 0;
  std::uint32_t stalled_latecomers_ = 0;
};

// For sysmon, in each round: does in the GRQ what PileUp::look() says.
void look_at_pile_up(Sched& sched, std::int64_t now);

// For the M that holds `p`, once for each pile-up: makes latecomers of those of its queue that have proven to be short.
void favour_proven(Sched& sched, P& p);

}  // namespace tuza::rt
