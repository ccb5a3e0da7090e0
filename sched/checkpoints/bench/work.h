// Work that programs do. Built twice, with checkpoints and without (../CMakeLists.txt).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace tuza::bench {

struct Work {
  const char* name;
  std::uint64_t (*run)(std::uint64_t rounds);  // returns a number that depends on all of the work
  std::uint64_t rounds;                        // some tens of milliseconds
  const char* round;                           // what one is
};

std::span<const Work> all_work();

void spin_until(const std::atomic<bool>& stop);

}  // namespace tuza::bench
