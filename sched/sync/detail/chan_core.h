// The part of a channel that does not depend on the element type: the lock, the ring of elements, the two
// queues of waiters.
//
// Chan<T> (chan.h) and select (select.h) are built on ChanCore; programs use those. ChanCore moves elements
// through the functions in Element, so that nothing of it is compiled anew for each type.
//
// How senders and receivers meet, always under the lock:
//
//     send:  closed -> misuse;  a receiver waits -> into its slot;  room in the ring -> there;  else wait
//     recv:  an element in the ring -> that, and the first waiting sender's element takes the place that
//            became free;  a sender waits -> its element;  closed -> nothing;  else wait
//
// Waiting senders that can still be claimed exist only while the ring is full, and claimable receivers only
// while it is empty: each change of the ring checks the queue first. Waiters of a select or of a context may
// have been claimed elsewhere and still stand in a queue; a thread that finds them there removes them.
//
// An element is moved once if the sender waits for the receiver or the receiver for the sender, and twice if
// it goes through the ring. recv() moves it once more, into its result. Moves do not throw.
//
// Thread-safe. Senders and receivers that wait park the G (a thread that is not a goroutine sleeps).
// Lifetime: a caller that a channel has released does not touch the channel again. The receiver of the last
// element may therefore destroy the channel, even while send() is still returning. The waker's last access
// is its unlock, before wake().
//
// Source: the algorithm of Go's channels (hchan), on the waits of wait.h.
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/wait.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tuza {

class Context;

namespace rt {

// The properties of the element type that a channel needs.
struct Element {
  std::size_t bytes;
  std::size_t alignment;
  bool is_word;                                     // 8 bytes that may be copied as they are
  void (*move)(void* to, void* from) noexcept;      // constructs *to; *from still exists, moved from
  void (*relocate)(void* to, void* from) noexcept;  // constructs *to; *from is destroyed
  void (*destroy)(void* element) noexcept;
};

class ChanCore {
 public:
  enum class Attempt : std::uint8_t { kDone, kWouldBlock, kClosed };

  ChanCore(const Element& element, std::size_t capacity);
  ChanCore(const ChanCore&) = delete;
  ChanCore& operator=(const ChanCore&) = delete;
  ~ChanCore();  // aborts if there are waiters

  // False: `until` ended the wait first, and *from is untouched. Parks. Aborts on a closed channel.
  bool send(void* from, const Until& until = {});
  // kWouldBlock: `until` ended the wait first. *to is constructed if and only if the result is kDone. Parks.
  Attempt recv(void* to, const Until& until = {});
  bool try_send(void* from);
  Attempt try_recv(void* to);
  void close();
  [[nodiscard]] std::size_t length();
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

  // -- For select, which holds the locks of several channels. Under lock().
  SpinLock& lock() TUZA_RETURNS_LOCK(lock_) { return lock_; }
  // Addresses only, which select takes before it locks.
  WaitQueue& senders() TUZA_NO_THREAD_SAFETY_ANALYSIS { return senders_; }
  WaitQueue& receivers() TUZA_NO_THREAD_SAFETY_ANALYSIS { return receivers_; }
  // False: it would block. True may be wrong: the waiters may have been claimed elsewhere.
  [[nodiscard]] bool may_send() const TUZA_REQUIRES(lock_) {
    return closed_ || count_ < capacity_ || !receivers_.empty();
  }
  [[nodiscard]] bool may_recv() const TUZA_REQUIRES(lock_) {
    return closed_ || count_ > 0 || !senders_.empty();
  }
  // `served`: the waiter whose wait is over. The caller must wake it after unlocking.
  Attempt send_now(void* from, Waiter*& served) TUZA_REQUIRES(lock_);
  Attempt recv_now(void* to, Waiter*& served) TUZA_REQUIRES(lock_);

 private:
  [[gnu::noinline]] bool wait_to_send(void* from, const Until& until) TUZA_RELEASE(lock_);
  [[gnu::noinline]] Attempt wait_to_recv(void* to, const Until& until) TUZA_RELEASE(lock_);
  void leave(WaitQueue& queue, Waiter& place);
  void leave_senders(Waiter& place) { leave(senders(), place); }
  void leave_receivers(Waiter& place) { leave(receivers(), place); }
  // Avoid a call for the most common elements: numbers and pointers.
  void move(void* to, void* from) const { element_.is_word ? copy_word(to, from) : element_.move(to, from); }
  void relocate(void* to, void* from) const {
    element_.is_word ? copy_word(to, from) : element_.relocate(to, from);
  }
  static void copy_word(void* to, const void* from) { std::memcpy(to, from, sizeof(std::uint64_t)); }
  [[nodiscard]] void* at(std::size_t index) const { return ring_ + index * element_.bytes; }

  SpinLock lock_;
  bool closed_ TUZA_GUARDED_BY(lock_) = false;
  std::size_t count_ TUZA_GUARDED_BY(lock_) = 0;  // elements in the ring
  std::size_t head_ TUZA_GUARDED_BY(lock_) = 0;   // index of the oldest of them
  WaitQueue senders_
      TUZA_GUARDED_BY(lock_);  // slot: the element. ok: it was taken; else the channel was closed
  WaitQueue receivers_
      TUZA_GUARDED_BY(lock_);  // slot: where to construct the element. ok: done; else the channel was closed
  const Element& element_;     // constant
  const std::size_t capacity_;
  std::byte* const ring_;
};

// A wait on the nil channel, which nobody ever serves. Returns when `until` ends the wait. Parks.
void wait_on_nil(const Until& until = {});

// Return the cause of `context` if it ends first, or has already ended. Null is the nil channel. Park.
Result<void> chan_send(ChanCore* chan, void* from, const tuza::Context& context);
Result<bool> chan_recv(ChanCore* chan, void* to, const tuza::Context& context);  // false: closed and empty

[[noreturn, gnu::cold]] void fatal_close_of_nil();
[[noreturn, gnu::cold]] void fatal_send_on_closed();

}  // namespace rt
}  // namespace tuza
