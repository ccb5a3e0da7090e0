#include <tuza/netpoll/memory/link.h>

#include <tuza/sched/rt/enter.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tuza::net::memory {
namespace {

std::error_code system_error_of(int number) { return {number, std::system_category()}; }

std::size_t index_of(Link::Side side) { return side == Link::Side::kRead ? 0 : 1; }

}  // namespace

std::size_t Ring::put(std::span<const std::byte> from) {
  const std::size_t n = std::min(from.size(), room());
  const std::size_t at = (begin_ + size_) % capacity_;
  const std::size_t first = std::min(n, capacity_ - at);
  if (first > 0) std::memcpy(&bytes_[at], from.data(), first);
  if (n > first) std::memcpy(&bytes_[0], from.data() + first, n - first);
  size_ += n;
  return n;
}

std::size_t Ring::get(std::span<std::byte> into, bool takes) {
  const std::size_t n = std::min(into.size(), size_);
  const std::size_t first = std::min(n, capacity_ - begin_);
  if (first > 0) std::memcpy(into.data(), &bytes_[begin_], first);
  if (n > first) std::memcpy(into.data() + first, &bytes_[0], n - first);
  if (!takes) return n;
  begin_ = (begin_ + n) % capacity_;
  size_ -= n;
  return n;
}

void Link::News::add(const End& to, Descriptor::Events events) {
  if (to.descriptor == nullptr) return;
  if (events.hung_up)
    to.descriptor->mark_hung_up();  // until detach(), which needs the lock, it is this connection's
  (items_[0] ? items_[1] : items_[0]).emplace(to.descriptor, to.cookie, events);
}

Link::News::~News() {
  for (const std::optional<Item>& item : items_) {
    if (item) item->descriptor->notify(item->events, item->cookie);
  }
}

// In each function below, `news` is declared before the lock, so that it is told after the lock is free; and the guard of
// the runtime keeps the goroutine from losing its P while it holds the lock.

void Link::attach(int end, Descriptor& descriptor) {
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  End& me = ends_[static_cast<std::size_t>(end)];
  me.descriptor = &descriptor;
  me.cookie = descriptor.cookie();
}

void Link::detach(int end) {
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  ends_[static_cast<std::size_t>(end)].descriptor = nullptr;
}

bool Link::readable(const End& end) const {
  const std::optional<Fault>& fault = end.faults[index_of(Side::kRead)];
  return end.received.size() > 0 || end.ended || end.reset || (fault && fault->after_bytes == 0);
}

bool Link::may_read(int end) {
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  return readable(ends_[static_cast<std::size_t>(end)]);
}

Link::Outcome Link::read(int end, std::span<std::byte> into, bool takes) {
  News news;
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  End& me = ends_[static_cast<std::size_t>(end)];
  std::optional<Fault>& fault = me.faults[index_of(Side::kRead)];
  if (into.empty()) return {.done = true};
  if (fault) {
    if (fault->after_bytes == 0) {
      const std::error_code code = fault->code;
      if (takes) fault.reset();
      return {.error = code};
    }
    into = into.first(std::min(into.size(), fault->after_bytes));
  }
  if (!readable(me)) return {};
  if (me.received.size() == 0 && me.reset && !me.ended) return {.error = system_error_of(ECONNRESET)};
  const bool was_full = me.received.room() == 0;
  const std::size_t n = me.received.get(into, takes);
  if (takes && fault) fault->after_bytes -= n;
  if (takes && was_full) news.add(ends_[static_cast<std::size_t>(1 - end)], {.writable = true});
  return {.bytes = n, .done = true};
}

Link::Outcome Link::write(int end, std::span<const std::byte> data) {
  News news;
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  End& me = ends_[static_cast<std::size_t>(end)];
  End& peer = ends_[static_cast<std::size_t>(1 - end)];
  if (data.empty()) return {.done = true};
  if (me.reset) return {.error = system_error_of(me.ended ? EPIPE : ECONNRESET)};
  if (me.ended_peer) return {.error = system_error_of(EPIPE)};
  std::optional<Fault>& fault = me.faults[index_of(Side::kWrite)];
  std::span<const std::byte> part = data;
  if (fault) {
    if (fault->after_bytes == 0) {
      const std::error_code code = fault->code;
      fault.reset();
      return {.error = code};
    }
    part = data.first(std::min(data.size(), fault->after_bytes));
  }
  std::size_t n = part.size();
  if (peer.closed) {
    reset_locked(me, news);
  } else {
    const bool was_empty = peer.received.size() == 0;
    n = peer.received.put(part);
    if (n > 0 && was_empty) news.add(peer, {.readable = true});
  }
  if (fault) fault->after_bytes -= n;
  return {.bytes = n, .done = n == data.size()};
}

bool Link::end_stream(int end) {
  News news;
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  End& me = ends_[static_cast<std::size_t>(end)];
  if (me.reset) return false;
  if (me.ended_peer) return true;
  me.ended_peer = true;
  End& peer = ends_[static_cast<std::size_t>(1 - end)];
  peer.ended = true;
  news.add(peer, {.readable = true, .hung_up = true});
  return true;
}

void Link::close(int end, bool aborts) {
  News news;
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  End& me = ends_[static_cast<std::size_t>(end)];
  if (me.closed) return;
  me.closed = true;
  End& peer = ends_[static_cast<std::size_t>(1 - end)];
  if (aborts || me.received.size() > 0) return reset_locked(peer, news);
  if (me.ended_peer || me.reset) return;
  peer.ended = true;
  news.add(peer, {.readable = true, .hung_up = true});
}

void Link::reset_locked(End& end, News& news) {
  end.reset = true;
  news.add(end, {.readable = true, .writable = true, .hung_up = true});
}

std::size_t Link::unread(int end) {
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  return ends_[static_cast<std::size_t>(end)].received.size();
}

void Link::order(int end, Side side, const Fault& fault) {
  News news;
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  End& me = ends_[static_cast<std::size_t>(end)];
  me.faults[index_of(side)] = fault;
  news.add(me, {.readable = true, .writable = true});
}

}  // namespace tuza::net::memory
