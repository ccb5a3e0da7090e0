#include <tuza/netpoll/tests/fake_poller.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace tuza::net::testing {

int FakeKernel::lowest_free() const {
  int fd = 0;
  while (ends_.contains(fd)) ++fd;
  return fd;
}

std::pair<int, int> FakeKernel::open_pair() {
  const std::scoped_lock lock(mutex_);
  const int here = lowest_free();
  ends_[here] = End{.peer = -1};
  const int there = lowest_free();
  ends_[there] = End{.peer = here};
  ends_[here].peer = there;
  return {here, there};
}

PollEvent FakeKernel::state_of(const End& end) const {
  const bool hung_up = end.peer < 0;
  const bool room = !hung_up && ends_.at(end.peer).received < kBufferBytes;
  return {.cookie = end.cookie,
          .readable = hung_up || end.received > 0,
          .writable = hung_up || room,
          .hung_up = hung_up};
}

void FakeKernel::notify(End& end, bool readable, bool writable) {
  if (end.poller == nullptr) return;
  const bool hung_up = end.peer < 0;
  end.poller->events_.push_back({end.cookie, readable || hung_up, writable || hung_up, hung_up});
  end.poller->changed_.notify_all();
}

std::size_t FakeKernel::send(int fd, std::size_t n) {
  const std::scoped_lock lock(mutex_);
  const int peer = ends_.at(fd).peer;
  if (peer < 0) return 0;
  End& to = ends_.at(peer);
  n = std::min(n, kBufferBytes - to.received);
  to.received += n;
  if (n > 0) notify(to, true, false);
  return n;
}

std::size_t FakeKernel::receive(int fd, std::size_t n) {
  const std::scoped_lock lock(mutex_);
  End& end = ends_.at(fd);
  const bool was_full = end.received == kBufferBytes;
  n = std::min(n, end.received);
  end.received -= n;
  if (was_full && n > 0 && end.peer >= 0) notify(ends_.at(end.peer), false, true);
  return n;
}

void FakeKernel::close(int fd) {
  const std::scoped_lock lock(mutex_);
  const int peer = ends_.at(fd).peer;
  ends_.erase(fd);
  if (peer < 0) return;
  End& end = ends_.at(peer);
  end.peer = -1;
  notify(end, true, true);
}

FakePoller::~FakePoller() {
  FakeKernel& kernel = FakeKernel::instance();
  const std::scoped_lock lock(kernel.mutex_);
  for (auto& [fd, end] : kernel.ends_) {
    if (end.poller == this) end.poller = nullptr;
  }
}

long FakePoller::add(int fd, std::uint64_t cookie) {
  FakeKernel& kernel = FakeKernel::instance();
  const std::scoped_lock lock(kernel.mutex_);
  const auto found = kernel.ends_.find(fd);
  if (found == kernel.ends_.end()) return -EBADF;
  FakeKernel::End& end = found->second;
  end.poller = this;
  end.cookie = cookie;
  const PollEvent now = kernel.state_of(end);
  if (now.readable || now.writable) kernel.notify(end, now.readable, now.writable);
  return 0;
}

std::size_t FakePoller::wait(std::int64_t timeout_ns, std::span<PollEvent> into) {
  FakeKernel& kernel = FakeKernel::instance();
  std::unique_lock lock(kernel.mutex_);
  const auto anything = [this] { return woken_ || !events_.empty(); };
  if (timeout_ns < 0) changed_.wait(lock, anything);
  if (timeout_ns > 0) changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), anything);
  if (timeout_ns != 0) woken_ = false;
  const std::size_t n = std::min(into.size(), events_.size());
  std::copy_n(events_.begin(), n, into.begin());
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

void FakePoller::wake() {
  const std::scoped_lock lock(FakeKernel::instance().mutex_);
  woken_ = true;
  changed_.notify_all();
}

}  // namespace tuza::net::testing
