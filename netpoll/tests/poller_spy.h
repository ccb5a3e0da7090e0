// Records every wait of the netpoller in the test program: the linker substitutes the spy (--wrap, in
// CMakeLists.txt), so the product needs no counters for it.
//
// Thread-safe.
#pragma once

#include <cstdint>

namespace tuza::net::testing::poller_spy {

// Calls so far.
std::uint64_t calls();
// Threads that are in a call that may block, and their maximum since reset().
int blocking();
int most_blocking();
void reset();

}  // namespace tuza::net::testing::poller_spy
