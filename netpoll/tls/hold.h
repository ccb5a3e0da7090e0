// What a goroutine holds of a TLS connection while it waits for the socket, and the end of the runtime.
//
// One that is left behind in such a wait never goes on; the connection may, in another runtime. So the end of the
// runtime does in its stead what it would do if the wait had failed: it takes what was sent off the queue, and gives the
// locks back. Elsewhere the goroutine is in the middle of something, and what it holds it holds for ever.
//
// Owner: the goroutine, on whose stack these are. The end of the runtime reads them when it can no longer run.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/tls/wire.h>
#include <tuza/sched/detail/pending_wait.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/sync/mutex.h>

#include <cstddef>
#include <mutex>
#include <span>

namespace tuza::net::tls {

class LeftBehind {
 public:
  LeftBehind(const LeftBehind&) = delete;
  LeftBehind& operator=(const LeftBehind&) = delete;

 protected:
  LeftBehind() : on_record_(innermost(), &pending_) {}
  ~LeftBehind() = default;
  // For a goroutine that was left behind in a wait for the socket.
  virtual void give_up() = 0;

 private:
  static void claim(rt::G& g, void* self) { static_cast<LeftBehind*>(self)->waits_ = Descriptor::waits(g); }
  static bool leave(void* self) {
    auto& left_behind = *static_cast<LeftBehind*>(self);
    if (left_behind.waits_) left_behind.give_up();
    return true;
  }
  static constexpr rt::Withdrawal kWithdrawal{&LeftBehind::claim, &LeftBehind::leave};

  rt::PendingWait*& innermost() {
    rt::G* const g = rt::current_g();
    return g != nullptr ? g->pending_wait : of_a_thread_;
  }

  bool waits_ = false;
  rt::PendingWait* of_a_thread_ = nullptr;  // which the end of the runtime does not concern
  rt::PendingWait pending_{kWithdrawal, this};
  const rt::PendingWaitScope on_record_;
};

// The lock of one direction, for a scope.
class Hold final : LeftBehind {
 public:
  explicit Hold(Mutex& mutex) : lock_(mutex) {}
  Hold(Mutex& mutex, std::adopt_lock_t) : lock_(mutex, std::adopt_lock) {}

 private:
  void give_up() override { lock_.unlock(); }
  std::unique_lock<Mutex> lock_;
};

// The head of Wire::out, while it is sent.
class Sending final : LeftBehind {
 public:
  Sending(Queue& queue, std::span<const std::byte> unsent, Mutex& ssl_mutex)
      : left(unsent), queue_(queue), ssl_mutex_(ssl_mutex), unsent_(unsent) {}

  // With `ssl_mutex` held: takes what was sent off the queue.
  void consume() { queue_.consume(unsent_.size() - left.size()); }

  std::span<const std::byte> left;  // what is not sent yet

 private:
  void give_up() override {
    // Held by one that was left behind inside OpenSSL: nobody will use the connection any more.
    if (!ssl_mutex_.try_lock()) return;
    consume();
    ssl_mutex_.unlock();
  }

  Queue& queue_;
  Mutex& ssl_mutex_;
  const std::span<const std::byte> unsent_;
};

}  // namespace tuza::net::tls
