// A descriptor that goroutines can wait for: a socket, a pipe, an eventfd.
//
// Descriptors are type-stable: slots in slabs that are recycled but never unmapped, each with an index and
// a sequence number that go into the event cookie, so that an event for a recycled descriptor is recognised
// and dropped instead of waking a stranger.
//
// One registration with the poller for life, edge-triggered: for reading, and from the first write that has
// to wait on for both directions. Most sockets never get there, and are spared the event that says that a new
// socket has room. What edges ask of us: after one, read until the socket is known to be drained. A read that
// returns less than was asked for says so already, which saves the read that would return EAGAIN; the next
// read then waits for an edge first. That is wrong for two cases: the end of the stream may have come with the
// data, in the same edge; and a read of TCP stops where urgent data (MSG_OOB) was, with more behind it. Events
// that say "hang up" or "urgent" are therefore remembered, and after one every read asks the kernel. It is
// wrong, too, where a local stream carries descriptors (SCM_RIGHTS), which nobody here asks for: a read stops
// behind them, no event says so, and the rest is read at the next edge. To ask the kernel once more for each
// request of everybody's is not worth that.
//
// An edge is reported once, however many threads poll; but a report says what holds when it is made, not what
// the edge was. An edge of the other direction can so report data whose own edge is about to be: the second
// report, if it reaches the slot after the first was consumed, costs the next read a system call in vain. A
// TCP socket has such edges only when a write had to wait. A local stream of which a write had to wait once
// has one each time that its peer reads: at most one read in vain for each of them, measured on two Ps: none
// to 14 in 200. Taking an event that is in the slot before each read was tried, and changed nothing: the
// second report comes when the read has begun. Watching for EPOLLOUT only while a write waits would help, at
// the price of a system call for each of these.
//
// Thread-safe. Reads exclude each other, as do writes. Functions that wait park the goroutine.
#pragma once

#include <tuza/netpoll/poll/deadline.h>
#include <tuza/netpoll/poll/fd_mutex.h>
#include <tuza/netpoll/poll/wait_slot.h>
#include <tuza/sched/result.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/context.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/uio.h>

namespace tuza::rt {
struct Withdrawal;
}

namespace tuza::net {

// A buffer that does not exist while nothing has come.
class LazyBuffer {
 public:
  // Called when the descriptor may be readable.
  virtual std::span<std::byte> take() = 0;
  // Called when it was not, after take(): the reader goes on waiting.
  virtual void give_back() = 0;

 protected:
  ~LazyBuffer() = default;
};

class Descriptor {
 public:
  using Side = FdMutex::Side;

  // kBoth: for one that is known to wait to write soon.
  enum class Watch : std::uint8_t { kReads, kBoth };
  // Registers the open, non-blocking `fd`, and owns it from then on, also if this fails. The caller owns the
  // descriptor until dispose().
  static Result<Descriptor*> open(int fd, std::string_view op, Watch watch = Watch::kReads);

  // All calls return Errc::kClosed from now on, those that wait here included; the last of them gives the
  // number back to the system. May be called again, and by anybody. Does not park.
  void close();

  // Closes; the owner will not touch the descriptor again. Calls of others may still be under way.
  void dispose();

  // What follows takes a context or null. Its end ends the call, with its cause, also one that has begun to
  // wait; nothing else changes, and the next call goes on where this one was. It does not end the waiting for
  // another reader (writer) to be done.

  // At least one byte, or 0 at the end of the stream. Parks.
  Result<std::size_t> read(std::span<std::byte> into, const Context* ctx = nullptr);
  // The same for a reader that takes a buffer only when there is something to read. Parks.
  Result<std::size_t> read(LazyBuffer& into, const Context* ctx = nullptr);
  // All of it, or an error; then some of it may have been sent. Sockets only. Parks.
  Result<void> write_all(std::span<const std::byte> data, const Context* ctx = nullptr);
  // The same for several pieces, gathered into as few system calls as possible. Changes `pieces`.
  Result<void> write_all(std::span<struct iovec> pieces, const Context* ctx = nullptr);
  // As the first, for a caller who goes on later: `data` becomes what is left. Parks.
  Result<void> write_on(std::span<const std::byte>& data, const Context* ctx);
  // The reason why a call of that side would fail at once, if there is one. Does not park.
  [[nodiscard]] Result<void> may_start(Side side, std::string_view op, const Context* ctx) {
    if (mutex_.closed()) return std::unexpected(Error(Errc::kClosed, op));
    return may_begin(side, op, ctx);
  }
  // Runs `call(fd)`, a system call that returns -errno, until it no longer says EAGAIN. Parks. For accept and
  // connect.
  template <class Call>
  Result<long> retry(Side side, std::string_view op, Call call, const Context* ctx = nullptr);
  // Runs `call(fd)` with the descriptor kept open. Does not park by itself.
  template <class Call>
  Result<long> control(std::string_view op, Call call);

  // Deadlines for calls of one direction, present ones included; see Deadline::set.
  void set_deadline(Side side, std::int64_t when_ns) { deadline(side).set(when_ns); }

  // Each wait of a write at most so long; 0: no limit. Sets the write deadline for the length of the wait.
  void set_write_timeout(std::int64_t timeout_ns) {
    write_timeout_ns_.store(timeout_ns, std::memory_order_relaxed);
  }

  // Others hold the socket, too, and it stays open when this closes its number. Before anybody uses it.
  void set_shared() { shared_ = true; }

  // -- For the poller.
  [[nodiscard]] std::uint64_t cookie() const {
    return std::uint64_t{sequence_.load(std::memory_order_relaxed)} << 32 | index_;
  }
  // What the cookie of an event names; null if that descriptor is gone.
  static Descriptor* from_cookie(std::uint64_t cookie);
  struct Events {
    bool readable, writable, hung_up;
  };
  // Takes note, and returns the goroutines that waited: to be readied by the caller, null for none.
  struct Woken {
    rt::G* reader;
    rt::G* writer;
  };
  Woken deliver(Events events);

  // -- For what keeps something of its own while it waits here (tls/hold.h).
  // At the end of the runtime: whether `g` was left behind in a wait for a descriptor.
  [[nodiscard]] static bool waits(const rt::G& g);

 private:
  friend class DescriptorPool;
  explicit Descriptor(std::uint32_t index)
      : index_(index),
        read_deadline_(&Descriptor::wake_reader, this),
        write_deadline_(&Descriptor::wake_writer, this) {}

  Deadline& deadline(Side side) { return side == Side::kRead ? read_deadline_ : write_deadline_; }
  WaitSlot& slot(Side side) { return side == Side::kRead ? reader_ : writer_; }
  static void wake_reader(void* self);
  static void wake_writer(void* self);
  void wake(Side side);

  // With the lock of `side` held: waits for an edge. An error if closed, if the deadline has passed, or if
  // the context has ended.
  Result<void> wait(Side side, std::string_view op, const Context* ctx);
  template <class GiveUp>
  [[nodiscard]] bool wait_in_slot(Side side, GiveUp give_up);
  struct Waiting;
  static const rt::Withdrawal kWithdrawal;
  Result<void> wait_within(Side side, std::string_view op, const Context& ctx);
  Result<void> register_again(std::string_view op);
  Result<void> watch_writes(std::string_view op);
  // The reason not to wait, or not to go on waiting; if there is one.
  [[nodiscard]] bool must_not_wait(Side side) { return mutex_.closed() || deadline(side).expired(); }
  [[nodiscard]] Error reason(std::string_view op) const;
  // The reason not to begin, if there is one.
  [[nodiscard]] Result<void> may_begin(Side side, std::string_view op, const Context* ctx);
  Result<void> wait_to_write(const Context* ctx);
  Result<std::size_t> read_locked(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx);

  void close_number();
  void drop_holder();

  // A reference, with the lock of a side or without, for a scope. False if the descriptor is closed.
  class Use {
   public:
    Use(Descriptor& d, Side side) : d_(d), side_(side), locks_(true), ok_(d.mutex_.lock(side)) {}
    explicit Use(Descriptor& d) : d_(d), side_(Side::kRead), locks_(false), ok_(d.mutex_.acquire()) {}
    ~Use() {
      if (ok_ && (locks_ ? d_.mutex_.unlock(side_) : d_.mutex_.release())) d_.close_number();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return ok_; }

   private:
    Descriptor& d_;
    const Side side_;
    const bool locks_;
    const bool ok_;
  };

  const std::uint32_t index_;
  std::atomic<std::uint32_t> sequence_{0};    // raised when the number is given back
  std::atomic<std::uint32_t> holders_{0};     // the owner, and the open number; at 0 the slot is recycled
  int fd_ = -1;                               // guarded by references: constant while there is one
  bool shared_ = false;                       // constant while it is used
  bool drained_ = false;                      // guarded by the read lock: nothing to read until an edge
  bool watches_writes_ = false;               // guarded by the write lock: the poller tells of room to write
  std::atomic<std::uint32_t> generation_{0};  // Netpoller::generation() when it was registered
  std::atomic<bool> hung_up_{false};          // the stream has ended, an error, urgent data: ask the kernel
  std::atomic<std::int64_t> write_timeout_ns_{0};
  FdMutex mutex_;
  WaitSlot reader_;
  WaitSlot writer_;
  Deadline read_deadline_;
  Deadline write_deadline_;
  Descriptor* next_free_ = nullptr;  // owner: DescriptorPool
};

template <class Call>
Result<long> Descriptor::retry(Side side, std::string_view op, Call call, const Context* ctx) {
  rt::parking_point();
  const Use use(*this, side);
  if (!use) return std::unexpected(Error(Errc::kClosed, op));
  if (Result<void> may = may_begin(side, op, ctx); !may) return std::unexpected(may.error());
  for (;;) {
    const long result = call(fd_);
    if (result >= 0) return result;
    if (result == -EINTR) continue;
    if (result != -EAGAIN) return std::unexpected(Error::from_errno(static_cast<int>(-result), op));
    if (Result<void> waited = wait(side, op, ctx); !waited) return std::unexpected(waited.error());
  }
}

template <class Call>
Result<long> Descriptor::control(std::string_view op, Call call) {
  const Use use(*this);
  if (!use) return std::unexpected(Error(Errc::kClosed, op));
  const long result = call(fd_);
  if (result < 0) return std::unexpected(Error::from_errno(static_cast<int>(-result), op));
  return result;
}

}  // namespace tuza::net
