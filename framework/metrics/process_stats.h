// The kernel's statistics about this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tuza {

// Empty: cannot be read, as where /proc is not mounted.
struct ProcessStats {
  std::optional<double> cpu_seconds;  // user and system
  std::optional<std::uint64_t> resident_bytes, virtual_bytes;
  std::optional<std::uint64_t> open_fds, max_fds;  // max_fds is empty if there is no limit
  std::optional<double> start_seconds;             // since 1970
};

// Reads `proc`; tests pass another folder than the default. Blocks the thread for about 100 us. Parks.
ProcessStats process_stats(const std::string& proc = "/proc");

}  // namespace tuza
