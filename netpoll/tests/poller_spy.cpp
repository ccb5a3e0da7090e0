#include <tuza/netpoll/poll/poller.h>
#include <tuza/netpoll/tests/poller_spy.h>

#include <atomic>
#include <cstddef>

namespace {

std::atomic<std::uint64_t> g_calls{0};
std::atomic<int> g_blocking{0};
std::atomic<int> g_most_blocking{0};

}  // namespace

extern "C" {

std::size_t __real_tuza_poller_wait(tuza::net::Poller& poller, std::int64_t timeout_ns,
                                    tuza::net::PollEvent* into, std::size_t into_size);

// The function that the linker calls instead.
std::size_t __wrap_tuza_poller_wait(tuza::net::Poller& poller, std::int64_t timeout_ns,
                                    tuza::net::PollEvent* into, std::size_t into_size) {
  ++g_calls;
  const bool blocks = timeout_ns != 0;
  if (blocks) {
    const int now = ++g_blocking;
    for (int seen = g_most_blocking; now > seen && !g_most_blocking.compare_exchange_weak(seen, now);) {
    }
  }
  const std::size_t n = __real_tuza_poller_wait(poller, timeout_ns, into, into_size);
  if (blocks) --g_blocking;
  return n;
}

}  // extern "C"

namespace tuza::net::testing::poller_spy {

std::uint64_t calls() { return g_calls; }
int blocking() { return g_blocking; }
int most_blocking() { return g_most_blocking; }
void reset() { g_most_blocking = 0; }

}  // namespace tuza::net::testing::poller_spy
