#include <tuza/netpoll/detail/idle_watch.h>

#include <utility>

namespace tuza::net {
namespace {

constexpr int kLooks = 4;  // within a timeout

}  // namespace

struct IdleWatch::Lifeline {
  Mutex mutex;
  IdleWatch* watch TUZA_GUARDED_BY(mutex) = nullptr;
};

IdleWatch::IdleWatch(const Context& parent, std::chrono::milliseconds timeout)
    : between_looks_(std::chrono::nanoseconds(timeout) / kLooks),
      watched_(timeout.count() > 0 ? with_cancel(parent) : CancellableContext()),
      ctx_(timeout.count() > 0 ? watched_.ctx() : parent) {
  if (timeout.count() <= 0) return;
  lifeline_ = std::make_shared<Lifeline>();
  const LockGuard held(lifeline_->mutex);  // the first look waits until all is there
  lifeline_->watch = this;
  next_look_ = after_func(between_looks_, [lifeline = lifeline_] {
    const LockGuard lock(lifeline->mutex);
    if (lifeline->watch != nullptr) lifeline->watch->look();
  });
}

IdleWatch::~IdleWatch() {
  if (lifeline_ == nullptr) return;
  const LockGuard lock(lifeline_->mutex);  // waits for a look that is under way
  lifeline_->watch = nullptr;
}

void IdleWatch::look() {
  const std::uint64_t moves = moves_.load(std::memory_order_relaxed);
  looks_in_vain_ = std::exchange(seen_, moves) == moves ? looks_in_vain_ + 1 : 0;
  if (looks_in_vain_ == kLooks) return watched_.cancel(Error(Errc::kTimeout, "relay", "idle connections"));
  next_look_.reset(between_looks_);
}

}  // namespace tuza::net
