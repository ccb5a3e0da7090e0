#include <tuza/netpoll/memory/memory_backlog.h>

#include <tuza/sched/rt/enter.h>

#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

namespace tuza::net::memory {

bool MemoryBacklog::add(Conn conn) {
  std::list<Conn> one;  // if it is not taken, it is closed behind the lock
  one.push_back(std::move(conn));
  {
    const rt::Enter rt;  // the goroutine must not lose its P while it holds the mutex
    const LockGuard lock(mutex_);
    if (closed_) return false;
    waiting_.splice(waiting_.end(), one);
  }
  descriptor_.notify({.readable = true}, cookie_);
  return true;
}

void MemoryBacklog::fail(std::error_code code, int times) {
  {
    const rt::Enter rt;
    const LockGuard lock(mutex_);
    failure_ = code;
    failures_left_ = times;
  }
  descriptor_.notify({.readable = true}, cookie_);
}

Result<Conn> MemoryBacklog::accept(Descriptor& descriptor, const Context* ctx) {
  std::list<Conn> one;
  std::error_code failure;
  const auto take = [&](int) -> long {
    const rt::Enter rt;
    const LockGuard lock(mutex_);
    if (closed_) return -EINVAL;
    if (failures_left_ > 0) {
      --failures_left_;
      failure = failure_;
      return 0;
    }
    if (waiting_.empty()) return -EAGAIN;
    one.splice(one.end(), waiting_, waiting_.begin());
    return 0;
  };
  const Result<long> taken = descriptor.retry(Descriptor::Side::kRead, "accept", take, ctx);
  if (!taken) {
    const bool closing = taken.error().is(std::errc::invalid_argument);
    return std::unexpected(closing ? Error(Errc::kClosed, "accept") : taken.error());
  }
  if (failure) return std::unexpected(Error(failure, "accept"));
  return std::move(one.front());
}

void MemoryBacklog::drop_one() {
  std::list<Conn> one;
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  if (!waiting_.empty()) one.splice(one.end(), waiting_, waiting_.begin());
}

void MemoryBacklog::close() {
  std::list<Conn> dropped;
  {
    const rt::Enter rt;
    const LockGuard lock(mutex_);
    closed_ = true;
    dropped.swap(waiting_);
  }
  for (Conn& conn : dropped) (void)conn.set_linger_zero();
}

}  // namespace tuza::net::memory
