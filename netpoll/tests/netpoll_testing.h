// Helpers shared by netpoll's tests: connected pairs, bytes that can be verified, counts of waiting
// goroutines.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/serve.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/wait_reason.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::net::testing {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using namespace tuza::testing;

// Two ends of one TCP connection over loopback.
struct TcpPair {
  Conn client;
  Conn server;
};
Listener listen_on_loopback();
TcpPair connect(Listener& listener);
TcpPair tcp_pair();

// Two ends of a local stream, both descriptors of the runtime. Unlike TCP, its buffers are small, its data is
// available at once, and nothing else happens in between.
struct LocalPair {
  detail::DescriptorOwner here;
  detail::DescriptorOwner there;
};
LocalPair local_pair();
// The same as plain numbers, non-blocking.
struct Numbers {
  int here;
  int there;
};
Numbers local_numbers();

std::span<const std::byte> bytes(std::string_view text);
// The data of one read; the error's message in angle brackets if the read fails.
std::string read_some(Conn& conn, std::size_t at_most = 65536);
std::string read_some(Descriptor& descriptor, std::size_t at_most = 65536);
// Reads until the end of the stream, or an error.
std::string read_to_end(Conn& conn);

// For a server: echoes what it receives.
void echo(Session& session);
// True if the other end of `conn` runs echo().
bool answers(Conn& conn);

// The seed of this run, printed once so that a failure can be repeated: TUZA_TEST_SEED sets it.
std::uint64_t seed();
std::string random_bytes(std::mt19937_64& random, std::size_t n);

// Fills the buffers of a local stream: the next write has to wait. (TCP moves data on later by itself.)
void fill(Descriptor& descriptor);

// Times that are long past, and times that no test lives to see.
inline TimePoint long_ago() { return TimePoint(1ns); }
inline TimePoint far_away() { return Clock::now() + 1h; }

}  // namespace tuza::net::testing
