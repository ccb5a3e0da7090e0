// What the kernel says of this process.
#pragma once

#include <cstdint>

namespace tuza {

struct ProcessStats {
  double cpu_seconds = 0;  // user and system
  std::uint64_t resident_bytes = 0, virtual_bytes = 0;
  std::uint64_t open_fds = 0, max_fds = 0;
  double start_seconds = 0;  // since 1970
};

// Reads /proc; what is not there stays 0. Blocks its thread for as long as that takes, some 100 us. Parks.
ProcessStats process_stats();

}  // namespace tuza
