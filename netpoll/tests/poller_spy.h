// Sees every call of Poller::wait in the test program: the linker puts the spy in its place (--wrap, in
// CMakeLists.txt), so that the product needs no counters for it.
//
// Thread-safe.
#pragma once

#include <cstdint>

namespace tuza::net::testing::poller_spy {

// Calls so far.
std::uint64_t calls();
// Threads that are in a call that may block, and the most there have been at once since reset().
int blocking();
int most_blocking();
void reset();

}  // namespace tuza::net::testing::poller_spy
