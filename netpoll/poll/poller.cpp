// What every back end of the poller has in common.
#include <tuza/netpoll/poll/poller.h>

#include <tuza/sched/log.h>
#include <tuza/sched/result.h>
#include <tuza/sched/rt/base/futex.h>

#include <algorithm>

namespace tuza::net {
namespace {

// Pause between two attempts to wait, where the system refuses.
constexpr std::int64_t kNapNs = 5'000'000;

}  // namespace

void Poller::refused(std::string_view call, long error, std::int64_t timeout_ns) {
  if (timeout_ns == 0) return;  // a non-blocking poll must not sleep
  if (!refusal_logged_.exchange(true, std::memory_order_relaxed)) {
    log_line(LogLevel::kError, "tuza: " + Error::from_errno(static_cast<int>(-error), call).message() +
                                   "; goroutines waiting for I/O stay blocked");
  }
  std::atomic<std::uint32_t> nobody_wakes{0};
  rt::futex_wait(nobody_wakes, 0, timeout_ns < 0 ? kNapNs : std::min(timeout_ns, kNapNs));
}

extern "C" std::size_t tuza_poller_wait(Poller& poller, std::int64_t timeout_ns, PollEvent* into,
                                        std::size_t into_size) {
  return poller.wait(timeout_ns, std::span(into, into_size));
}

}  // namespace tuza::net
