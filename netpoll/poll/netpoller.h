// The netpoller connects descriptors, the poller and the scheduler.
//
// The netpoller is made when the first descriptor of a runtime is opened. It is the scheduler's I/O source:
// idle Ms block in poll(), busy Ms poll without blocking. When all Ms are busy, the netpoller's own thread
// does the waiting (sched/rt/queue/io_source.h); otherwise that thread sleeps on a note.
//
// Thread-safe.
#pragma once

#include <tuza/netpoll/poll/poller.h>
#include <tuza/sched/result.h>
#include <tuza/sched/rt/base/note.h>
#include <tuza/sched/rt/queue/io_source.h>

#include <pthread.h>

#include <atomic>

namespace tuza::net {

class Netpoller final : public IoSource {
 public:
  // The netpoller of the running runtime. Errors: no runtime; no descriptors or threads left.
  static Result<Netpoller*> get();
  // Ends the registration of `fd`, if it is of this generation and the runtime goes on. Not needed where closing `fd` follows and
  // does that (Poller::kClosingRemoves). Any thread; nothing happens in the child of a fork, which shares its parent's poller.
  static void forget(int fd, std::uint32_t generation);

  // Changes whenever a runtime gets or loses its netpoller: a registration is valid for one generation.
  [[nodiscard]] static std::uint32_t generation() { return generation_.load(std::memory_order_acquire); }

  [[nodiscard]] Poller& poller() { return poller_; }

  // IoSource
  void poll(std::int64_t timeout_ns, rt::GList& ready) override;
  void wake() override { poller_.wake(); }
  void take_over() override;
  void detach() override;

 private:
  explicit Netpoller(long& error) : poller_(error) {}
  static void* thread_main(void* self);
  void run();
  void stop_thread();

  static inline std::atomic<std::uint32_t> generation_{0};  // written under the mutex of get()

  Poller poller_;
  rt::Note note_;
  std::atomic<bool> stopping_{false};
  pthread_t thread_{};
};

}  // namespace tuza::net
