// How long a WebSocket waits for its peer: pings, and the deadline of the closing handshake. Both are deadlines of reads.
//
//   reader:  before_wait() | the read parks         | after_wait(whether there are bytes)
//   timer:                 | ping, then a deadline   |
//   reader:                |   any byte: the deadline is withdrawn before the next wait
//
// A reader that does other work sees no pong, so the peer is judged only while the reader waits: the timer does nothing
// otherwise, and before_wait() adds to the deadline what the reader has been away for. Waits that end with their context
// tell nothing of the peer, and change nothing else. The deadline of the closing handshake stays.
//
// Thread-safe; before_wait() and after_wait() belong to the reader.
#pragma once

#include <tuza/http/websocket/writer.h>
#include <tuza/netpoll/conn.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/detail/thread_annotations.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/clock.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tuza::http::websocket {

class Liveness {
 public:
  explicit Liveness(net::Conn& conn) : conn_(conn) {}
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  void before_wait() {
    if (pong_awaited_.load(std::memory_order_seq_cst)) [[unlikely]]
      go_on();
    waiting_.store(true, std::memory_order_relaxed);
  }
  void after_wait(bool got_bytes) {
    waiting_.store(false, std::memory_order_relaxed);
    if (got_bytes) {
      received_.store(received_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    } else {
      left_ = tuza::now();
    }
  }

  // By the timer. The ping is given up when `ending` ends. Throws std::bad_alloc. Parks.
  void tick(const Context& ending, Writer& writer, std::chrono::milliseconds pong_timeout) {
    const std::uint64_t before = received_.load(std::memory_order_relaxed);
    if (!waiting_.load(std::memory_order_relaxed)) return;
    if (pong_awaited_.load(std::memory_order_relaxed)) return;  // another ping would postpone the deadline
    {
      const auto [ctx, cancel] = with_timeout(ending, pong_timeout);
      if (!writer.ping(ctx)) return;
    }
    const LockGuard lock(mutex_);
    if (closing_) return;
    deadline_ = net::time_after_now(pong_timeout);
    received_before_ = before;
    conn_.set_read_deadline(deadline_);
    pong_awaited_.store(true, std::memory_order_seq_cst);
    // The pong may have come before the deadline. Sequential consistency: either this load sees that bytes have come, or
    // the next before_wait() sees the store above.
    if (received_.load(std::memory_order_seq_cst) != before) withdraw();
  }

  // From now on, the reader waits at most so long for the end.
  void close_within(std::chrono::milliseconds timeout) {
    const LockGuard lock(mutex_);
    if (closing_) return;
    closing_ = true;
    conn_.set_read_deadline(net::time_after_now(timeout));
  }

 private:
  // By the reader, before it waits again. If its last wait brought no bytes, it has been away since left_.
  [[gnu::noinline]] void go_on() {
    const LockGuard lock(mutex_);
    if (received_.load(std::memory_order_relaxed) != received_before_) return withdraw();
    deadline_ += tuza::now() - left_;
    if (!closing_) conn_.set_read_deadline(deadline_);
  }
  void withdraw() TUZA_REQUIRES(mutex_) {
    pong_awaited_.store(false, std::memory_order_relaxed);
    if (!closing_) conn_.set_read_deadline(net::kNoDeadline);
  }

  net::Conn& conn_;
  std::atomic<bool> waiting_{false};
  std::atomic<std::uint64_t> received_{0};  // waits that have brought bytes; written by the reader
  net::TimePoint left_{};                   // when the reader's last wait ended without any; the reader's own
  Mutex mutex_;                             // orders the deadlines
  std::atomic<bool> pong_awaited_{false};   // written under mutex_
  net::TimePoint deadline_ TUZA_GUARDED_BY(mutex_){};          // for the pong
  std::uint64_t received_before_ TUZA_GUARDED_BY(mutex_) = 0;  // received_ at the ping
  bool closing_ TUZA_GUARDED_BY(mutex_) = false;
};

}  // namespace tuza::http::websocket
