#include <tuza/sched/sync/detail/chan_core.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>

#include <cstdint>
#include <limits>
#include <new>

namespace tuza::rt {
namespace {

std::byte* make_ring(const Element& element, std::size_t capacity) {
  if (capacity == 0) return nullptr;
  if (capacity > std::numeric_limits<std::ptrdiff_t>::max() / element.bytes) {
    fatal("Chan: capacity out of range");
  }
  return static_cast<std::byte*>(
      ::operator new(capacity * element.bytes, std::align_val_t{element.alignment}));
}

}  // namespace

void fatal_send_on_closed() { fatal("send on closed channel"); }

ChanCore::ChanCore(const Element& element, std::size_t capacity)
    : element_(element), capacity_(capacity), ring_(make_ring(element, capacity)) {}

ChanCore::~ChanCore() {
  if (!senders_.empty() || !receivers_.empty()) check_nobody_waits("Chan", lock_, senders_, receivers_);
  for (; count_ > 0; --count_) {
    element_.destroy(at(head_));
    if (++head_ == capacity_) head_ = 0;
  }
  if (ring_ != nullptr) ::operator delete(ring_, std::align_val_t{element_.alignment});
}

ChanCore::Attempt ChanCore::send_now(void* from, Waiter*& served) {
  if (closed_) return Attempt::kClosed;
  if (!receivers_.empty()) {
    if (Waiter* receiver = receivers_.claim_first()) {
      move(receiver->slot, from);
      receiver->ok = true;
      served = receiver;
      return Attempt::kDone;
    }
  }
  if (count_ == capacity_) return Attempt::kWouldBlock;
  std::size_t tail = head_ + count_;
  if (tail >= capacity_) tail -= capacity_;
  move(at(tail), from);
  ++count_;
  return Attempt::kDone;
}

ChanCore::Attempt ChanCore::recv_now(void* to, Waiter*& served) {
  Waiter* sender = nullptr;
  if (count_ > 0) {
    void* const oldest = at(head_);
    relocate(to, oldest);
    if (++head_ == capacity_) head_ = 0;
    if (!senders_.empty()) sender = senders_.claim_first();
    if (sender == nullptr) {
      --count_;
      return Attempt::kDone;
    }
    move(oldest,
         sender->slot);  // the ring was full: the oldest element's place is the youngest's
  } else {
    if (!senders_.empty()) sender = senders_.claim_first();
    if (sender == nullptr) return closed_ ? Attempt::kClosed : Attempt::kWouldBlock;
    move(to, sender->slot);
  }
  sender->ok = true;
  served = sender;
  return Attempt::kDone;
}

[[gnu::flatten]] bool ChanCore::send(void* from, const Until& until) {
  parking_point();
  const Enter rt;  // a goroutine must not lose its P while it holds the lock
  Waiter* served = nullptr;
  lock_.lock();
  const Attempt attempt = send_now(from, served);
  if (attempt == Attempt::kWouldBlock) return wait_to_send(from, until);
  lock_.unlock();
  if (attempt == Attempt::kClosed) [[unlikely]]
    fatal_send_on_closed();
  if (served != nullptr) served->wait->wake();
  return true;
}

[[gnu::flatten]] ChanCore::Attempt ChanCore::recv(void* to, const Until& until) {
  parking_point();
  const Enter rt;
  Waiter* served = nullptr;
  lock_.lock();
  const Attempt attempt = recv_now(to, served);
  if (attempt == Attempt::kWouldBlock) return wait_to_recv(to, until);
  lock_.unlock();
  if (served != nullptr) served->wait->wake();
  return attempt;
}

// These two take over the lock. Inside the runtime.

bool ChanCore::wait_to_send(void* from, const Until& until) {
  Wait wait;
  Waiter place(wait, tuza::rt::leave<&ChanCore::leave_senders>, this);
  place.slot = from;
  senders_.push_back(place);
  lock_.unlock();
  if (wait.block(WaitReason::kChanSend, until) == nullptr) {
    leave_senders(place);
    return false;
  }
  if (!place.ok) fatal_send_on_closed();
  return true;
}

ChanCore::Attempt ChanCore::wait_to_recv(void* to, const Until& until) {
  Wait wait;
  Waiter place(wait, tuza::rt::leave<&ChanCore::leave_receivers>, this);
  place.slot = to;
  receivers_.push_back(place);
  lock_.unlock();
  if (wait.block(WaitReason::kChanReceive, until) == nullptr) {
    leave_receivers(place);
    return Attempt::kWouldBlock;
  }
  return place.ok ? Attempt::kDone : Attempt::kClosed;
}

void ChanCore::leave(WaitQueue& queue, Waiter& place) {
  const LockGuard lock(lock_);
  if (place.queued) queue.remove(place);
}

bool ChanCore::try_send(void* from) {
  const Enter rt;
  Waiter* served = nullptr;
  lock_.lock();
  const Attempt attempt = send_now(from, served);
  lock_.unlock();
  if (attempt == Attempt::kClosed) fatal_send_on_closed();
  if (served != nullptr) served->wait->wake();
  return attempt == Attempt::kDone;
}

ChanCore::Attempt ChanCore::try_recv(void* to) {
  const Enter rt;
  Waiter* served = nullptr;
  lock_.lock();
  const Attempt attempt = recv_now(to, served);
  lock_.unlock();
  if (served != nullptr) served->wait->wake();
  return attempt;
}

void ChanCore::close() {
  const Enter rt;
  Waiter* claimed = nullptr;  // linked by `next`; each is ours until we wake it
  lock_.lock();
  if (closed_) {
    lock_.unlock();
    fatal("close of closed channel");
  }
  closed_ = true;
  Waiter** end = &claimed;
  for (WaitQueue* queue : {&receivers_, &senders_}) {
    while (Waiter* w = queue->claim_first()) {
      *end = w;
      end = &w->next;
    }
  }
  *end = nullptr;
  lock_.unlock();
  while (claimed != nullptr) {
    Waiter* const w = claimed;
    claimed = w->next;
    w->wait->wake();
  }
}

std::size_t ChanCore::length() {
  const Enter rt;
  const LockGuard lock(lock_);
  return count_;
}

}  // namespace tuza::rt
