// How many goroutines without a P may compute: arithmetic only (rt/slice/lane.h).
//
// As many may compute as there are Ps, and some more; none more while goroutines wait for a P.
//
// Fewer are resumed than there is room for in two cases. First, if nobody computes, all may wait for a lock
// that one of the suspended threads holds. Each resumed thread that does not hold it would wait as well, and
// could no longer be suspended. Second, a thundering herd: many threads that wait now and then were woken
// together. A thousand threads that read the same part of a file from the disk all resume when it has
// arrived, and all wait for the next part. A scan finds most of them waiting, and there seems to be room for
// everybody; then, for some milliseconds, hundreds want a core, and neither the Ms with a P nor sysmon get
// one. Such a herd is remembered for a second. During that second threads beyond one per P are resumed one at
// a time.
#pragma once

#include <cstdint>

namespace tuza::rt {

// Nothing is resumed while every computing thread waits for a core, as beside other busy programs: one more
// thread would not get a core sooner, and may be about to wait for a lock that one of these holds.
//
// Owner: sysmon.
class LaneRoom {
 public:
  // Call first in each scan.
  void set(std::uint32_t procs, std::uint32_t extra, bool others_wait) {
    procs_ = procs;
    most_ = procs + extra;
    size_ = others_wait ? procs : most_;
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }

  // `count` threads that an earlier scan saw waiting now compute.
  void note_woken(std::uint32_t count, std::int64_t now) {
    if (count > kHerdFactor * most_) herd_until_ns_ = now + kHerdNs;
  }

  // The number of threads that may wait during a thundering herd.
  [[nodiscard]] std::uint32_t herd_size() const { return kHerdFactor * most_; }
  [[nodiscard]] bool herd_seen(std::int64_t now) const { return now < herd_until_ns_; }

  // How many threads may be resumed while `burning` compute, of which `unserved` have had no core lately.
  [[nodiscard]] std::uint32_t left(std::uint32_t burning, std::uint32_t unserved, std::int64_t now) {
    const std::uint32_t most = burning == 0 || now < herd_until_ns_ ? procs_ : size_;
    const bool served = burning == 0 || unserved < burning;
    if (burning < most && served) {
      next_ns_ = now + kStepNs;
      return most - burning;
    }
    // Each computing thread may use little of a core, or all may be bound to a core that others occupy.
    if (burning >= size_ || now < next_ns_) return 0;
    next_ns_ = now + kStepNs;
    return 1;
  }

  static constexpr std::uint32_t kHerdFactor = 2;
  static constexpr std::int64_t kHerdNs = 1'000'000'000;
  static constexpr std::int64_t kStepNs = 20'000'000;

 private:
  std::uint32_t procs_ = 0, most_ = 0, size_ = 0;
  std::int64_t herd_until_ns_ = 0;
  std::int64_t next_ns_ = 0;
};

}  // namespace tuza::rt
