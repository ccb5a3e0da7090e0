// The limit of a cgroup on its threads: pids.max, systemd's TasksMax, an engine's --pids-limit.
#pragma once

#include <cstdint>
#include <limits>

namespace tuza::rt {

inline constexpr std::uint64_t kNoPidsMax = std::numeric_limits<std::uint64_t>::max();

// The limit that is reached at this moment; kNoPidsMax: none is, or none can be read. Blocks the M for some system calls;
// allocates nothing.
std::uint64_t reached_pids_max();

}  // namespace tuza::rt
