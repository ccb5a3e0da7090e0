// The kernel's counters of a connection.
#pragma once

#include <cstdint>

namespace tuza::http::testing {

// Data segments received; on loopback, one for each write of the peer that fits into a segment.
std::uint32_t data_segments_received(int fd);

}  // namespace tuza::http::testing
