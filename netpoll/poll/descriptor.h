// A file descriptor that goroutines can wait for: a socket, a pipe, an eventfd.
//
// Descriptors are type-stable: slots in slabs that are recycled but never unmapped. Each has an index and a
// sequence number that form the event cookie, so that an event for a recycled descriptor is recognised and
// dropped instead of waking an unrelated goroutine.
//
// A descriptor is registered with the poller once in its life, edge-triggered: at first for reading, and from
// the first write that has to wait on for both directions. Most sockets never reach that point, and are
// spared the event that reports room in a new socket. Edge triggering requires this: after an edge, read
// until the socket is known to be drained. A read that returns less than requested already shows that the
// socket is drained, which saves the read that would return EAGAIN; the next read then waits for an edge
// first. This conclusion is wrong in two cases: the end of the stream may have come with the data, in the
// same edge; and a TCP read stops at urgent data (MSG_OOB), with more data behind it. Events that report a
// hang-up or urgent data are therefore remembered, and after such an event every read asks the kernel. The
// conclusion is also wrong if a local stream carries descriptors (SCM_RIGHTS), which nothing here requests: a
// read stops behind them, no event reports that, and the rest is read at the next edge. This case does not
// justify one more system call for every request of every connection.
//
// An edge is reported once, however many threads poll; but a report describes the state at the time of the
// report, not the edge itself. An edge of the other direction can therefore report data whose own edge is
// about to be reported. If that second report reaches the slot after the first was consumed, the next read
// makes one spurious system call. A TCP socket has such edges only when a write had to wait. A local stream
// on which a write once had to wait has one such edge each time its peer reads: at most one spurious read for
// each, measured on two Ps: 0 to 14 in 200. Consuming an event that is already in the slot before each read
// was tried, and changed nothing: the second report comes after the read has begun. Watching for EPOLLOUT
// only while a write waits would help, at the price of one system call for each wait.
//
// A descriptor in memory has no number, and the poller does not know it: a transport that moves bytes between goroutines
// (netpoll/memory) lends from here what a connection promises about locks, deadlines, contexts and close(), and reports
// events itself, by notify().
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
#include <string_view>

#include <sys/uio.h>

namespace tuza::rt {
struct Withdrawal;
}

namespace tuza::net {

class SplicePipe;
struct FileSlice;

// A buffer that is allocated only once data may have arrived.
class LazyBuffer {
 public:
  // Called when the descriptor may be readable.
  virtual std::span<std::byte> take() = 0;
  // Called after take() if the descriptor was not readable: the reader continues to wait.
  virtual void give_back() = 0;

 protected:
  ~LazyBuffer() = default;
};

// What is to happen when a peer hangs up.
class HangUpHandler {
 public:
  // Called once, on any thread, perhaps on the scheduler's stack: must neither park nor free anything. `why`: what close() was
  // given; null if the peer has gone, or if nothing was given.
  virtual void hung_up(const Error* why) = 0;

 protected:
  ~HangUpHandler() = default;
};

class Descriptor {
 public:
  using Side = FdMutex::Side;

  // kBoth: for a descriptor that is known to wait for writability soon.
  enum class Watch : std::uint8_t { kReads, kBoth };
  // Registers the open, non-blocking `fd`, and owns it from then on, even on an error. The caller owns the
  // Descriptor until dispose().
  static Result<Descriptor*> open(int fd, std::string_view op, Watch watch = Watch::kReads);
  // One in memory. To the calls of retry() and control() its number is -1. Null: there are too many descriptors.
  static Descriptor* open_in_memory();

  // All calls return Errc::kClosed from now on, waiting calls included; the last of them closes the number.
  // May be called repeatedly, by any goroutine. `why`: for the HangUpHandler. Does not park.
  void close(const Error* why = nullptr);

  // Closes; the owner must not touch the descriptor again. Calls of other goroutines may still be under way.
  void dispose();

  // The following functions take a context or null. The end of the context ends the call with the context's
  // cause, even if the call already waits; nothing else changes, and the next call continues at the same
  // point.

  // Reads at least one byte, or returns 0 at the end of the stream. Parks.
  Result<std::size_t> read(std::span<std::byte> into, const Context* ctx = nullptr);
  // The same for a reader that takes a buffer only when there is data to read. Parks.
  Result<std::size_t> read(LazyBuffer& into, const Context* ctx = nullptr);
  // Reads what is there, or fails with EAGAIN. Not in memory. Parks only while somebody else reads.
  Result<std::size_t> read_now(std::span<std::byte> into);
  // Whether the last read has drained the socket, and the poller has reported nothing since: no data, no end. Reports take their
  // time, and come only while some goroutine waits for a descriptor. Not in memory; nobody may read meanwhile. Does not ask the
  // kernel.
  [[nodiscard]] bool is_quiet() const {
    return drained_ && !hung_up_.load(std::memory_order_acquire) && !reader_.has_event();
  }
  // Writes all of `data`, or returns an error after a part may have been sent. Sockets only. Parks.
  Result<void> write_all(std::span<const std::byte> data, const Context* ctx = nullptr);
  // The same for several pieces, gathered into as few system calls as possible. Changes `pieces`. Parks.
  Result<void> write_all(std::span<struct iovec> pieces, const Context* ctx = nullptr);
  // Like the first write_all(), for a caller that continues later: `data` becomes the unsent rest. Parks.
  Result<void> write_on(std::span<const std::byte>& data, const Context* ctx);
  // As Conn::send_file(), on this socket. Both become the unsent rest. Parks.
  Result<void> send_file(FileSlice& slice, std::string_view& head, const Context* ctx);
  // Moves what this socket has received into the empty pipe, up to `most` bytes, without waiting for it: 0 if there is nothing
  // now, or at the end of the stream; the next read() tells which. Parks while another goroutine reads.
  Result<std::size_t> splice_to(SplicePipe& pipe, std::uint64_t most, const Context* ctx);
  // Waits until a read or splice_to() may find something, the end, or an error. Parks.
  Result<void> wait_for_data(const Context* ctx);
  // Writes all that is in the pipe, or returns an error after a part may have been sent. Parks.
  Result<void> splice_from(SplicePipe& pipe, const Context* ctx);
  // The error with which a call of that side would fail at once, if any. Does not park.
  [[nodiscard]] Result<void> may_start(Side side, std::string_view op, const Context* ctx) {
    if (mutex_.closed()) return std::unexpected(Error(Errc::kClosed, op));
    return may_begin(deadline(side), op, ctx);
  }
  // Runs `call(fd)`, a system call that returns -errno, until the result is not EAGAIN. Parks. For accept and
  // connect.
  template <class Call>
  Result<long> retry(Side side, std::string_view op, Call call, const Context* ctx = nullptr);
  // Runs `call(fd)` with the descriptor kept open. Does not park by itself.
  template <class Call>
  Result<long> control(std::string_view op, Call call);
  // A read or write of a transport in memory. Calls `step(moved)` until its Result is an error, or true; false: waits, as a
  // read or a write of a socket would, for notify(). It adds to `moved` what it has moved. Parks.
  template <class Step>
  Result<void> transfer(Side side, Step step, const Context* ctx);

  // Deadline for calls of one direction, waiting ones included; see Deadline::set.
  void set_deadline(Side side, std::int64_t when_ns) { deadline(side).set(when_ns); }

  // Limits each wait of a write; 0: no limit. Sets the write deadline for the duration of the wait.
  void set_write_timeout(std::int64_t timeout_ns) {
    write_timeout_ns_.store(timeout_ns, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t write_timeout_ns() const {
    return write_timeout_ns_.load(std::memory_order_relaxed);
  }
  // With a write timeout, limits the waits of all writes together: to the timeout, plus the time that the bytes accepted by
  // the peer take at this rate. Before the first write; 0: no limit.
  void set_write_rate_min(std::uint32_t bytes_per_second) { write_rate_min_ = bytes_per_second; }

  // In addition, no wait of a write goes on beyond this time of rt::clock_now_ns(); Deadline::kNone: no limit.
  void set_write_limit(std::int64_t when_ns) { write_limit_ns_.store(when_ns, std::memory_order_relaxed); }

  // For a call of one direction that both reads and writes, such as a TLS handshake: while this object exists, the deadline
  // of that direction, and no other, ends both, and the write timeout limits each wait. Nobody else may read or write
  // meanwhile. An abandoned goroutine leaves it in force until the next one.
  class OneDeadline {
   public:
    OneDeadline(Descriptor& d, Side side) : d_(d) {
      // seq_cst, against the expiry of a deadline: either the expiry sees this and wakes both sides, or a wait sees that
      // the deadline has expired.
      d_.ruled_by_.store(side == Side::kRead ? Rule::kRead : Rule::kWrite, std::memory_order_seq_cst);
    }
    ~OneDeadline() { d_.ruled_by_.store(Rule::kOwn, std::memory_order_seq_cst); }
    OneDeadline(const OneDeadline&) = delete;
    OneDeadline& operator=(const OneDeadline&) = delete;

   private:
    Descriptor& d_;
  };

  // Calls `handler` once when the peer hangs up, ends its side of the stream, or sends urgent data, or when this
  // descriptor is closed; at once if it has happened. One handler at a time.
  void watch_hang_up(HangUpHandler* handler);
  // True: the handler has not been called, and will not be. False: it has been, or is being called.
  bool forget_hang_up() { return on_hang_up_.exchange(0) != 0; }

  // -- For the poller.
  [[nodiscard]] std::uint64_t cookie() const {
    return std::uint64_t{sequence_.load(std::memory_order_relaxed)} << 32 | index_;
  }
  // The descriptor that an event's cookie refers to; null if that descriptor is gone.
  static Descriptor* from_cookie(std::uint64_t cookie);
  struct Events {
    bool readable = false, writable = false, hung_up = false;
  };
  // Records the events, and returns the waiting goroutines, which the caller must ready; null for none.
  struct Woken {
    rt::G* reader;
    rt::G* writer;
  };
  // `cookie`: of the event. The descriptor may have been recycled since it was looked up; then the wake-ups are spurious.
  Woken deliver(Events events, std::uint64_t cookie);

  // -- For what stands in for the poller and the kernel, in memory.
  // What a hang-up leaves behind for a watch_hang_up() to come. Before the notify(), and while the owner cannot dispose of the
  // descriptor: the next connection to use it must not find the mark, and in memory there is no kernel to ask.
  void mark_hung_up() { hung_up_.store(true); }
  // As deliver(), but for the mark, and readies whom it wakes. Any thread of the runtime; does not park.
  void notify(Events events, std::uint64_t cookie);
  [[nodiscard]] bool in_memory() const { return in_memory_; }

  // -- For code that keeps state of its own while it waits here (tls/hold.h).
  // At the end of the runtime: true if `g` was left behind in a wait for a descriptor.
  [[nodiscard]] static bool waits(const rt::G& g);

 private:
  friend class DescriptorPool;
  Descriptor(std::uint32_t index, bool in_memory)
      : index_(index),
        in_memory_(in_memory),
        read_deadline_(&Descriptor::wake_reader, this, in_memory),
        write_deadline_(&Descriptor::wake_writer, this, in_memory) {}

  Deadline& deadline(Side side) { return side == Side::kRead ? read_deadline_ : write_deadline_; }
  // The deadline that ends waits of that side: its own, but for OneDeadline.
  enum class Rule : std::uint8_t { kOwn, kRead, kWrite };
  Deadline& ruling_deadline(Side side) {
    const Rule rule = ruled_by_.load(std::memory_order_seq_cst);
    return rule == Rule::kOwn ? deadline(side) : rule == Rule::kRead ? read_deadline_ : write_deadline_;
  }
  void wake_all_ruled(Side side);
  WaitSlot& slot(Side side) { return side == Side::kRead ? reader_ : writer_; }
  Woken wake_for(Events events);
  static void wake_reader(void* self);
  static void wake_writer(void* self);
  void wake(Side side);

  // The caller holds the lock of `side`. Waits for an edge. An error if the descriptor is closed, the
  // deadline has passed, or the context has ended.
  Result<void> wait(Side side, std::string_view op, const Context* ctx);
  template <class GiveUp>
  [[nodiscard]] bool wait_in_slot(Side side, GiveUp give_up);
  struct Waiting;
  static const rt::Withdrawal kWithdrawal;
  Result<void> wait_within(Side side, std::string_view op, const Context& ctx);
  Result<void> register_again(std::string_view op);
  Result<void> watch_writes(std::string_view op);
  // True if there is a reason not to wait, or not to continue waiting.
  [[nodiscard]] bool must_not_wait(Side side) { return mutex_.closed() || ruling_deadline(side).expired(); }
  [[nodiscard]] Error reason(std::string_view op) const;
  // The reason not to begin, if any.
  [[nodiscard]] Result<void> may_begin(Side side, std::string_view op, const Context* ctx) {
    return may_begin(ruling_deadline(side), op, ctx);
  }
  [[nodiscard]] Result<void> may_begin(const Deadline& deadline, std::string_view op, const Context* ctx) {
    if (!deadline.expired() && (ctx == nullptr || !ctx->done())) [[likely]]
      return {};
    return std::unexpected(reason_not_to_begin(deadline, op, ctx));
  }
  [[nodiscard]] Error reason_not_to_begin(const Deadline& deadline, std::string_view op,
                                          const Context* ctx) const;
  Result<void> wait_to_read(const Context* ctx);
  Result<void> wait_to_write(const Context* ctx);
  [[nodiscard]] std::int64_t write_wait_max_ns(std::int64_t timeout_ns) const;
  // The caller holds the write lock. `flags`: of send(2), besides MSG_NOSIGNAL.
  Result<void> write_locked(std::span<const std::byte>& data, int flags, const Context* ctx);
  [[gnu::cold]] void pay_for_waits(std::size_t accepted);
  // The caller holds the read lock. The number of bytes, or -errno.
  long receive(std::span<std::byte> into);
  Result<std::size_t> read_locked(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx);

  // Calls the handler, if it watches the descriptor with that sequence number.
  void report_hang_up(std::uint64_t sequence, const Error* why = nullptr);
  void close_number();
  void drop_holder();

  // Why there is no Use.
  [[nodiscard]] Error refusal(std::string_view op, const Context* ctx) const {
    return ctx == nullptr || mutex_.closed() ? Error(Errc::kClosed, op) : ctx->cause();
  }
  // A scoped reference, with or without the lock of a side. False if the descriptor is closed, or if the context has ended
  // before the lock was free.
  class Use {
   public:
    Use(Descriptor& d, Side side, const Context* ctx)
        : d_(d), side_(side), locks_(true), ok_(d.mutex_.lock(side, ctx)) {}
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
  const bool in_memory_;  // also of all later uses: a late event of the poller never finds one in memory
  std::atomic<std::uint32_t> sequence_{0};    // incremented when the number is closed
  std::atomic<std::uint32_t> holders_{0};     // the owner, and the open number; at 0 the slot is recycled
  int fd_ = -1;                               // guarded by references: constant while one exists
  bool drained_ = false;                      // guarded by the read lock: no data until the next edge
  bool is_socket_ = true;                     // guarded by the read lock: as far as is known
  bool watches_writes_ = false;               // guarded by the write lock: the poller reports room to write
  std::atomic<std::uint32_t> generation_{0};  // Netpoller::generation() when it was registered
  std::atomic<Rule> ruled_by_{Rule::kOwn};
  std::atomic<bool> hung_up_{false};  // end of stream, error or urgent data: ask the kernel
  // The handler, and the lowest bits of the sequence number above its address. Whoever takes it calls it, or forgets it.
  std::atomic<std::uint64_t> on_hang_up_{0};
  std::atomic<std::int64_t> write_timeout_ns_{0};
  std::atomic<std::int64_t> write_limit_ns_{
      Deadline::kNone};               // relaxed, both: a writer sets it for its own waits
  std::uint32_t write_rate_min_ = 0;  // bytes per second; constant during use
  std::uint32_t write_waited_us_ =
      0;  // guarded by the write lock: waits that accepted bytes have not paid for
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
  const Use use(*this, side, ctx);
  if (!use) return std::unexpected(refusal(op, ctx));
  if (Result<void> may = may_begin(side, op, ctx); !may) return std::unexpected(may.error());
  for (;;) {
    const long result = call(fd_);
    if (result >= 0) return result;
    if (result == -EINTR) continue;
    if (result != -EAGAIN) return std::unexpected(Error::from_errno(static_cast<int>(-result), op));
    if (Result<void> waited = wait(side, op, ctx); !waited) return std::unexpected(waited.error());
  }
}

template <class Step>
Result<void> Descriptor::transfer(Side side, Step step, const Context* ctx) {
  const std::string_view op = side == Side::kRead ? "read" : "write";
  rt::parking_point();
  const Use use(*this, side, ctx);
  if (!use) return std::unexpected(refusal(op, ctx));
  if (Result<void> may = may_begin(side, op, ctx); !may) return may;
  for (;;) {
    std::size_t moved = 0;
    const Result<bool> done = step(moved);
    if (side == Side::kWrite && write_waited_us_ != 0) pay_for_waits(moved);
    if (!done) return std::unexpected(done.error());
    if (*done) return {};
    const Result<void> waited = side == Side::kRead ? wait_to_read(ctx) : wait_to_write(ctx);
    if (!waited) return waited;
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
