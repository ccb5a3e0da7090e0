// The netpoller: what connects descriptors, the poller and the scheduler.
//
// Made when the first descriptor of a runtime is opened. It is the scheduler's I/O source: idle Ms block in
// poll(), busy ones look in. Its own thread does the waiting when all Ms are busy (sched/rt/queue/io_source.h); it
// sleeps on a note otherwise.
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
  // The netpoller of the runtime that is on. Errors: no runtime, no descriptors or threads left.
  static Result<Netpoller*> get();

  // Changes whenever a runtime gets its netpoller or loses it: a registration is good for one generation.
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
