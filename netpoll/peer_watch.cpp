#include <tuza/netpoll/peer_watch.h>

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/queue/io_source.h>
#include <tuza/sched/sync/detail/run_mark.h>

#include <atomic>
#include <utility>

namespace tuza::net {

// Two references: the watch's, and that of the descriptor or of the goroutine that it has started.
class PeerWatch::Shared final : public HangUpHandler {
 public:
  // Somebody waits for the poller, if only for what the context ends; not if the peer is a goroutine (`in_memory`).
  Shared(Canceller canceller, bool in_memory) : canceller_(std::move(canceller)), in_memory_(in_memory) {
    run_.set();
    if (!in_memory_) rt::io_wait_begins();
  }

  // The poller calls this, perhaps on the scheduler's stack, where nothing may be freed.
  void hung_up(const Error* why) override {
    if (run_.ended()) return unref();  // closed after tuza::run, which has left the watching goroutine behind
    const bool in_memory = in_memory_;  // the goroutine may be the last that holds this object
    go({.name = "peer has gone"}, [this, cause = why != nullptr ? *why : Error(Errc::kClosed, "peer")] {
      end(cause);
      unref();
    });
    if (!in_memory) rt::io_wait_ends();  // after go(): somebody can run
  }
  // The watch ends before anything has happened.
  void forgotten() {
    if (!run_.ended() && !in_memory_) rt::io_wait_ends();
    unref();
  }
  void end(Error cause) { canceller_(std::move(cause)); }
  // The same, because nobody needs the context any more.
  void cancel() { canceller_(); }
  void unref() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  ~Shared() = default;
  const Canceller canceller_;
  const bool in_memory_;
  rt::RunMark run_;
  std::atomic<int> references_{2};
};

PeerWatch::PeerWatch(Conn& conn, CancellableContext made)
    : conn_(conn),
      context_(made.ctx()),
      shared_(new Shared(std::move(made.canceller()), detail::ConnParts::descriptor(conn).in_memory())) {
  detail::ConnParts::descriptor(conn).watch_hang_up(shared_);
}

PeerWatch::~PeerWatch() {
  if (detail::ConnParts::descriptor(conn_).forget_hang_up()) shared_->forgotten();
  shared_->cancel();
  shared_->unref();
}

}  // namespace tuza::net
