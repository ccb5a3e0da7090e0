// What every channel is, whatever it carries: the lock, the ring of elements, the two queues of waiters.
//
// Chan<T> (chan.h) and select (select.h) stand on it; programs use those. It moves elements through the
// functions in Element, so that none of this is compiled anew for each type.
//
// Who meets whom, always under the lock:
//
//     send:  closed -> misuse;  a receiver waits -> into its slot;  room in the ring -> there;  else wait
//     recv:  the ring has one -> that, and the first waiting sender's element takes the place that became
//            free;  a sender waits -> its element;  closed -> nothing;  else wait
//
// Waiting senders that can still be claimed exist only while the ring is full, and such receivers only while
// it is empty: each change of the ring looks at the queue first. Waiters of a select or of a context may have
// been claimed elsewhere and stand in a queue all the same; who meets them throws them out.
//
// An element is moved once if one of the two waits for the other, and twice by way of the ring; recv() moves
// it once more, into its result. Moves do not throw.
//
// Thread-safe. Senders and receivers that wait: the G (a thread that is not a goroutine sleeps). Lifetime:
// who is let go by a channel does not touch it again, so the receiver of the last element may destroy it,
// even while send() is still returning. The waker's last access is its unlock, before wake().
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

// What a channel must know of the type it carries.
struct Element {
  std::size_t bytes;
  std::size_t alignment;
  bool is_word;                                     // 8 bytes that may be copied as they are
  void (*move)(void* to, void* from) noexcept;      // makes *to; *from is still there, moved from
  void (*relocate)(void* to, void* from) noexcept;  // makes *to; *from is destroyed
  void (*destroy)(void* element) noexcept;
};

class ChanCore {
 public:
  enum class Attempt : std::uint8_t { kDone, kWouldBlock, kClosed };

  ChanCore(const Element& element, std::size_t capacity);
  ChanCore(const ChanCore&) = delete;
  ChanCore& operator=(const ChanCore&) = delete;
  ~ChanCore();  // aborts if somebody waits

  // False: `until` came first, and *from is untouched. Parks. Aborts on a closed channel.
  bool send(void* from, const Until& until = {});
  // kWouldBlock: `until` came first. *to is made if and only if it is kDone. Parks.
  Attempt recv(void* to, const Until& until = {});
  bool try_send(void* from);
  Attempt try_recv(void* to);
  void close();
  [[nodiscard]] std::size_t length();
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

  // -- For select, which holds the locks of several. Under lock().
  SpinLock& lock() { return lock_; }
  WaitQueue& senders() { return senders_; }
  WaitQueue& receivers() { return receivers_; }
  // False: it would block. True may turn out to be wrong: the waiters may have been claimed elsewhere.
  [[nodiscard]] bool may_send() const { return closed_ || count_ < capacity_ || !receivers_.empty(); }
  [[nodiscard]] bool may_recv() const { return closed_ || count_ > 0 || !senders_.empty(); }
  // `served`: whose wait is over. The caller wakes it when it has unlocked.
  Attempt send_now(void* from, Waiter*& served);
  Attempt recv_now(void* to, Waiter*& served);

 private:
  [[gnu::noinline]] bool wait_to_send(void* from, const Until& until);
  [[gnu::noinline]] Attempt wait_to_recv(void* to, const Until& until);
  void leave(WaitQueue& queue, Waiter& place);
  void leave_senders(Waiter& place) { leave(senders_, place); }
  void leave_receivers(Waiter& place) { leave(receivers_, place); }
  // The commonest elements, numbers and pointers, without a call.
  void move(void* to, void* from) const { element_.is_word ? copy_word(to, from) : element_.move(to, from); }
  void relocate(void* to, void* from) const {
    element_.is_word ? copy_word(to, from) : element_.relocate(to, from);
  }
  static void copy_word(void* to, const void* from) { std::memcpy(to, from, sizeof(std::uint64_t)); }
  [[nodiscard]] void* at(std::size_t index) const { return ring_ + index * element_.bytes; }

  SpinLock lock_;
  bool closed_ = false;     // guarded by lock_, like all that follows and is not constant
  std::size_t count_ = 0;   // elements in the ring
  std::size_t head_ = 0;    // where the oldest of them is
  WaitQueue senders_;       // slot: where the element is. ok: it was taken; else the channel was closed
  WaitQueue receivers_;     // slot: where it shall be made. ok: it was; else the channel was closed
  const Element& element_;  // constant
  const std::size_t capacity_;
  std::byte* const ring_;
};

// The nil channel: nobody ever comes. Returns when `until` ends the wait. Parks.
void wait_on_nil(const Until& until = {});

// With a context: its cause if it ended first, or had ended before. Null is the nil channel. Park.
Result<void> chan_send(ChanCore* chan, void* from, const tuza::Context& context);
Result<bool> chan_recv(ChanCore* chan, void* to, const tuza::Context& context);  // false: closed and empty

[[noreturn, gnu::cold]] void fatal_close_of_nil();
[[noreturn, gnu::cold]] void fatal_send_on_closed();

}  // namespace rt
}  // namespace tuza
