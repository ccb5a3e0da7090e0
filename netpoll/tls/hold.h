// Resources that a goroutine holds of a TLS connection while it waits for the socket, and their release at
// the end of the runtime.
//
// A goroutine abandoned in such a wait never continues, but the connection may continue, in another runtime.
// The end of the runtime therefore does what the goroutine would do if the wait had failed: it removes the
// sent bytes from the queue, and releases the locks. A goroutine abandoned anywhere else is in the middle of
// an operation, and holds its resources for ever.
//
// Owned by the goroutine; these objects are on its stack. The end of the runtime reads them when the
// goroutine can no longer run.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/tls/wire.h>
#include <tuza/sched/detail/pending_wait.h>
#include <tuza/sched/result.h>
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
  // Called for a goroutine that was abandoned in a wait for the socket.
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
  rt::PendingWait* of_a_thread_ = nullptr;  // not affected by the end of the runtime
  rt::PendingWait pending_{kWithdrawal, this};
  const rt::PendingWaitScope on_record_;
};

// The scoped lock of one direction.
class TUZA_SCOPED_CAPABILITY Hold final : LeftBehind {
 public:
  explicit Hold(Mutex& mutex) TUZA_ACQUIRE(mutex) : lock_(mutex) {}
  // Waits for the lock at most until the context ends, and is then refused.
  Hold(Mutex& mutex, const Context* ctx) TUZA_ACQUIRE(mutex) TUZA_NO_THREAD_SAFETY_ANALYSIS
      : lock_(mutex, std::defer_lock) {
    if (ctx != nullptr) {
      locked_ = mutex.lock(*ctx);
      if (locked_) lock_ = std::unique_lock<Mutex>(mutex, std::adopt_lock);
    } else {
      lock_.lock();
    }
  }
  Hold(Mutex& mutex, std::adopt_lock_t) TUZA_REQUIRES(mutex) : lock_(mutex, std::adopt_lock) {}
  ~Hold() TUZA_RELEASE() = default;
  // Success: the lock is held.
  [[nodiscard]] const Result<void>& locked() const { return locked_; }

 private:
  void give_up() override { lock_.unlock(); }
  std::unique_lock<Mutex> lock_;
  Result<void> locked_;
};

// The head of Wire::out while it is being sent.
class Sending final : LeftBehind {
 public:
  Sending(Queue& queue, std::span<const std::byte> unsent, Mutex& ssl_mutex)
      : left(unsent), queue_(queue), ssl_mutex_(ssl_mutex), unsent_(unsent) {}

  // The caller holds `ssl_mutex`. Removes the sent bytes from the queue.
  void consume() { queue_.consume(unsent_.size() - left.size()); }

  std::span<const std::byte> left;  // not sent yet

 private:
  void give_up() override {
    // If the mutex is held by a goroutine that was abandoned inside OpenSSL, the connection will never be
    // used again.
    if (!ssl_mutex_.try_lock()) return;
    consume();
    ssl_mutex_.unlock();
  }

  Queue& queue_;
  Mutex& ssl_mutex_;
  const std::span<const std::byte> unsent_;
};

}  // namespace tuza::net::tls
