// For how many of those without a P there is room: arithmetic only (rt/slice/lane.h).
//
// As many as there are Ps and some more may compute; none more while goroutines wait for a P.
//
// Fewer go on than there is room for in two cases. Where nobody computes, all may wait for a lock that one of
// the suspended holds; each of those that do not hold it would wait as well, and be suspended no more. And where
// many that wait now and then were woken together: a thousand that read the same part of a file from the disk all
// go on when it has come, and all wait for the next. When they are looked at most of them wait, and there seems to
// be room for everybody; then for some milliseconds hundreds want a core, and neither the Ms with a P nor sysmon
// get one. Such a crowd is remembered for a second. Beyond one for each P they go on one by one for so long.
#pragma once

#include <cstdint>

namespace tuza::rt {

// And nobody goes on while all that may compute wait for a core, as where other programs are busy: one more would
// not get one sooner, and may be about to wait for a lock of one of these.
//
// Owner: sysmon.
class LaneRoom {
 public:
  // Before the other calls, in each look.
  void set(std::uint32_t procs, std::uint32_t extra, bool others_wait) {
    procs_ = procs;
    most_ = procs + extra;
    size_ = others_wait ? procs : most_;
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }

  // `count` compute that were seen waiting before.
  void note_woken(std::uint32_t count, std::int64_t now) {
    if (count > kCrowd * most_) crowd_until_ns_ = now + kCrowdNs;
  }

  // So many may wait while there is a crowd.
  [[nodiscard]] std::uint32_t crowd_size() const { return kCrowd * most_; }
  [[nodiscard]] bool crowded(std::int64_t now) const { return now < crowd_until_ns_; }

  // How many may go on, while `burning` compute. `unserved` of these have had no core lately.
  [[nodiscard]] std::uint32_t left(std::uint32_t burning, std::uint32_t unserved, std::int64_t now) {
    const std::uint32_t most = burning == 0 || now < crowd_until_ns_ ? procs_ : size_;
    const bool served = burning == 0 || unserved < burning;
    if (burning < most && served) {
      next_ns_ = now + kStepNs;
      return most - burning;
    }
    // Each of those that compute may use little of a core; or they may be tied to one that others have.
    if (burning >= size_ || now < next_ns_) return 0;
    next_ns_ = now + kStepNs;
    return 1;
  }

  static constexpr std::uint32_t kCrowd = 2;
  static constexpr std::int64_t kCrowdNs = 1'000'000'000;
  static constexpr std::int64_t kStepNs = 20'000'000;

 private:
  std::uint32_t procs_ = 0, most_ = 0, size_ = 0;
  std::int64_t crowd_until_ns_ = 0;
  std::int64_t next_ns_ = 0;
};

}  // namespace tuza::rt
