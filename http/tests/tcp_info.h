// What the kernel counts for a connection.
#pragma once

#include <cstdint>

namespace tuza::http::testing {

// Segments with data that have come; on loopback, one for each write of the peer that fits into one.
std::uint32_t data_segments_received(int fd);

}  // namespace tuza::http::testing
