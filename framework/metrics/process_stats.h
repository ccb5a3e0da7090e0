// The kernel's statistics about this process.
#pragma once

#include <cstdint>

namespace tuza {

struct ProcessStats {
  double cpu_seconds = 0;  // user and system
  std::uint64_t resident_bytes = 0, virtual_bytes = 0;
  std::uint64_t open_fds = 0, max_fds = 0;
  double start_seconds = 0;  // since 1970
};

// Reads /proc; values that are not available stay 0. Blocks the thread for about 100 us. Parks.
ProcessStats process_stats();

}  // namespace tuza
