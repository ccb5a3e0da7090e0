// Public header, part of <tuza/sync.h>.
//
// The limits of a ResourcePool (sched/time/resource_pool.h), and what it counts.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tuza {

struct ResourceLimits {
  std::size_t open_max = 8;                                        // at once; 0: no limit
  std::size_t idle_max = std::numeric_limits<std::size_t>::max();  // kept for later; 0: none
  // One that nobody has used for this long is closed; 0: no limit.
  std::chrono::nanoseconds idle_timeout = std::chrono::minutes(5);
  // The longest life, however busy; 0: no limit. Each resource lives a random time of nine to ten tenths of it: those
  // that were opened together do not all end together. One that is in use ends when it comes back.
  std::chrono::nanoseconds life_max{0};
};

struct ResourceStats {
  // Now. `open` counts places: also resources that are being opened or closed.
  std::size_t open = 0, in_use = 0, idle = 0, waiting = 0;
  // Since the beginning.
  std::uint64_t waited = 0;               // calls that found no place
  std::chrono::nanoseconds wait_time{0};  // of those that have ended, together
  std::uint64_t opened = 0, open_failed = 0;
  // Resources that were closed, by reason.
  std::uint64_t closed_idle_timeout = 0;  // unused for too long
  std::uint64_t closed_idle_max = 0;      // came back while enough were idle
  std::uint64_t closed_life = 0;          // too old
  std::uint64_t closed_check = 0;         // the check before its reuse failed
  std::uint64_t closed_broken = 0;        // discarded, or its reset failed
  std::uint64_t closed_at_end = 0;        // by close(), or came back after it

  [[nodiscard]] std::uint64_t closed() const {
    return closed_idle_timeout + closed_idle_max + closed_life + closed_check + closed_broken + closed_at_end;
  }
};

}  // namespace tuza
