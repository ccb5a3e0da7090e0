#include <tuza/netpoll/poll/descriptor.h>

#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include <tuza/netpoll/poll/descriptor_pool.h>
#include <tuza/netpoll/poll/netpoller.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/arch/tagged_address.h>
#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/detail/pending_wait.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/io_source.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <limits>

namespace tuza::net {

Result<Descriptor*> Descriptor::open(int fd, std::string_view op, Watch watch) {
  Result<Netpoller*> netpoller = Netpoller::get();
  Descriptor* d = netpoller ? DescriptorPool::take() : nullptr;
  long error = d == nullptr ? -ENOMEM : 0;
  if (d != nullptr) {
    d->fd_ = fd;
    d->holders_.store(2, std::memory_order_relaxed);
    d->generation_.store(Netpoller::generation(), std::memory_order_relaxed);
    Poller& poller = (*netpoller)->poller();
    d->watches_writes_ = watch == Watch::kBoth;
    error = d->watches_writes_ ? poller.add(fd, d->cookie()) : poller.add_reader(fd, d->cookie());
  }
  if (error == 0) return d;
  if (d != nullptr) {
    d->generation_.store(0, std::memory_order_relaxed);  // registered nowhere
    d->dispose();
  } else {
    sys::close(fd);
  }
  if (!netpoller) return std::unexpected(netpoller.error());
  return std::unexpected(Error::from_errno(static_cast<int>(-error), op));
}

Descriptor* Descriptor::open_in_memory() {
  Descriptor* d = DescriptorPool::take(/*in_memory=*/true);
  if (d == nullptr) return nullptr;
  d->holders_.store(2, std::memory_order_relaxed);
  d->generation_.store(Netpoller::generation(), std::memory_order_relaxed);
  d->watches_writes_ = true;
  return d;
}

void Descriptor::close(const Error* why) {
  if (!mutex_.close()) return;
  // The closed mark is set: a goroutine that announces itself from now on sees the mark, and a parked
  // goroutine is woken here.
  wake(Side::kRead);
  wake(Side::kWrite);
  report_hang_up(sequence_.load(std::memory_order_relaxed), why);
  if (mutex_.release()) close_number();
}

void Descriptor::dispose() {
  close();
  drop_holder();
}

void Descriptor::close_number() {
  sequence_.fetch_add(1, std::memory_order_release);  // events for the old number are dropped from here on
  if (!in_memory_) {
    // On epoll, closing ends the registration, too, unless others have the open file. But a thread in epoll_wait(2) may look
    // at it just then: Linux (seen with 6.18) holds the file meanwhile, and gives it up only when that call returns. If
    // nothing else happens, the peer waits for the end of the stream. Go removes descriptors, too.
    // On kqueue, registrations are those of the number. It ends here: a descriptor owns its number, and never gives it back.
    if constexpr (!Poller::kClosingRemoves)
      Netpoller::forget(fd_, generation_.load(std::memory_order_relaxed));
    sys::close(fd_);
  }
  fd_ = -1;
  drop_holder();
}

void Descriptor::drop_holder() {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Not in close_number(): the owner may set deadlines until it disposes of the descriptor.
  read_deadline_.clear();
  write_deadline_.clear();
  drained_ = false;
  is_socket_ = true;
  write_rate_min_ = write_waited_us_ = 0;
  write_timeout_ns_.store(0, std::memory_order_relaxed);
  write_limit_ns_.store(Deadline::kNone, std::memory_order_relaxed);
  hung_up_.store(false, std::memory_order_relaxed);
  ruled_by_.store(Rule::kOwn, std::memory_order_relaxed);
  reader_.reset();
  writer_.reset();
  mutex_.reset();
  DescriptorPool::put(this);
}

Error Descriptor::reason(std::string_view op) const {
  return Error(mutex_.closed() ? Errc::kClosed : Errc::kTimeout, op);
}

// A deadline may have been moved since it was found expired.
Error Descriptor::reason_not_to_begin(const Deadline& deadline, std::string_view op,
                                      const Context* ctx) const {
  return deadline.expired() || ctx == nullptr || !ctx->done() ? reason(op) : ctx->cause();
}

// A waiting goroutine holds the lock of its side and the reference that goes with it. A goroutine abandoned
// by the end of the runtime never releases them, so this object releases them for it.
struct Descriptor::Waiting {
  Descriptor& descriptor;
  const Side side;

  void withdraw(rt::G& g) { descriptor.slot(side).withdraw(g); }
  void leave() {
    if (descriptor.mutex_.unlock(side)) descriptor.close_number();
  }
};

constinit const rt::Withdrawal Descriptor::kWithdrawal{
    [](rt::G& g, void* wait) { static_cast<Waiting*>(wait)->withdraw(g); },
    [](void* wait) {
      static_cast<Waiting*>(wait)->leave();
      return true;
    }};

bool Descriptor::waits(const rt::G& g) {
  return g.pending_wait != nullptr && &g.pending_wait->withdrawal == &kWithdrawal;
}

// True: an edge has arrived.
template <class GiveUp>
bool Descriptor::wait_in_slot(Side side, GiveUp give_up) {
  Waiting waiting{*this, side};
  rt::PendingWait pending{kWithdrawal, &waiting};
  return slot(side).wait(side == Side::kRead ? WaitReason::kIoRead : WaitReason::kIoWrite, give_up, &pending,
                         in_memory_ ? WaitSlot::Source::kGoroutine : WaitSlot::Source::kPoller);
}

// A separate function, so that waiting without a context pays nothing for contexts.
Result<void> Descriptor::wait_within(Side side, std::string_view op, const Context& ctx) {
  // `watch` may still be called after this function has returned, or for a descriptor that has taken the
  // place of this one: it then wakes a waiter that finds no reason to give up, and continues to wait.
  const WhenDone watch = tuza::detail::at_end(ctx, [this, side] { wake(side); });
  const auto give_up = [this, side, &ctx] { return must_not_wait(side) || ctx.done(); };
  while (!wait_in_slot(side, give_up)) {
    if (must_not_wait(side)) return std::unexpected(reason(op));
    if (ctx.done()) return std::unexpected(ctx.cause());
  }
  return {};
}

// The descriptor was opened in a runtime that has ended, and its registration and timers have ended with that
// runtime. Reader and writer may come here at the same time: the second finds the work of the first done.
Result<void> Descriptor::register_again(std::string_view op) {
  std::uint32_t generation = Netpoller::generation();
  if (!in_memory_) {
    const Result<Netpoller*> netpoller = Netpoller::get();
    if (!netpoller) return std::unexpected(netpoller.error());
    generation = Netpoller::generation();
    const long error = (*netpoller)->poller().add(fd_, cookie());
    if (error != 0 && error != -EEXIST)
      return std::unexpected(Error::from_errno(static_cast<int>(-error), op));
  }
  read_deadline_.arm_again();
  write_deadline_.arm_again();
  generation_.store(generation, std::memory_order_relaxed);
  return {};
}

Result<void> Descriptor::watch_writes(std::string_view op) {
  const Result<Netpoller*> netpoller = Netpoller::get();
  if (!netpoller) return std::unexpected(netpoller.error());
  const long error = (*netpoller)->poller().watch_writes(fd_, cookie());
  if (error != 0) return std::unexpected(Error::from_errno(static_cast<int>(-error), op));
  watches_writes_ = true;
  return {};
}

Result<void> Descriptor::wait(Side side, std::string_view op, const Context* ctx) {
  if (generation_.load(std::memory_order_relaxed) != Netpoller::generation()) [[unlikely]] {
    if (Result<void> registered = register_again(op); !registered) return registered;
  }
  if (side == Side::kWrite && !watches_writes_) [[unlikely]] {
    if (Result<void> watched = watch_writes(op); !watched) return watched;
  }
  if (ctx != nullptr && ctx->event() != nullptr) return wait_within(side, op, *ctx);
  // Woken without an event and without a reason to give up: the deadline was moved just when it passed.
  while (!wait_in_slot(side, [this, side] { return must_not_wait(side); })) {
    if (must_not_wait(side)) return std::unexpected(reason(op));
  }
  return {};
}

constexpr std::int64_t kNsPerUs = 1000;

void Descriptor::pay_for_waits(std::size_t accepted) {
  const std::uint64_t paid_us = accepted * std::uint64_t{1'000'000} / std::max(write_rate_min_, 1u);
  write_waited_us_ -= static_cast<std::uint32_t>(std::min<std::uint64_t>(write_waited_us_, paid_us));
}

// What a write of a higher layer reads (OneDeadline) is a wait of that write.
Result<void> Descriptor::wait_to_read(const Context* ctx) {
  if (ruled_by_.load(std::memory_order_relaxed) != Rule::kWrite) [[likely]]  // set by this goroutine
    return wait(Side::kRead, "read", ctx);
  const std::int64_t timeout = write_timeout_ns_.load(std::memory_order_relaxed);
  if (timeout == 0) return wait(Side::kRead, "read", ctx);
  write_deadline_.set_after(timeout);
  Result<void> waited = wait(Side::kRead, "read", ctx);
  if (waited || !must_not_wait(Side::kRead)) write_deadline_.set(Deadline::kNone);
  return waited;
}

// What is left of the timeout, if there is one, or until the limit.
std::int64_t Descriptor::write_wait_max_ns(std::int64_t timeout_ns) const {
  // A peer that takes a byte now and then does not begin the timeout anew.
  const std::int64_t used = write_rate_min_ == 0 ? 0 : std::min(timeout_ns, write_waited_us_ * kNsPerUs);
  const std::int64_t limit = write_limit_ns_.load(std::memory_order_relaxed);
  if (limit == Deadline::kNone) return timeout_ns - used;
  const std::int64_t until_limit = limit - rt::clock_now_ns();
  return timeout_ns == 0 ? until_limit : std::min(until_limit, timeout_ns - used);
}

Result<void> Descriptor::wait_to_write(const Context* ctx) {
  const std::int64_t timeout = write_timeout_ns_.load(std::memory_order_relaxed);
  if (timeout == 0 && write_limit_ns_.load(std::memory_order_relaxed) == Deadline::kNone)
    return wait(Side::kWrite, "write", ctx);
  const auto now_ns = [this] { return in_memory_ ? rt::clock_now_ns() : rt::now_ns(); };
  const std::int64_t begun = now_ns();
  write_deadline_.set_after(write_wait_max_ns(timeout));
  Result<void> waited = wait(Side::kWrite, "write", ctx);
  if (write_rate_min_ != 0) {
    const std::int64_t all_us = write_waited_us_ + (now_ns() - begun) / kNsPerUs;
    write_waited_us_ =
        static_cast<std::uint32_t>(std::min<std::int64_t>(all_us, std::numeric_limits<std::uint32_t>::max()));
  }
  // The deadline was for this wait only, even if the wait ended because its context ended.
  if (waited || !must_not_wait(Side::kWrite)) write_deadline_.set(Deadline::kNone);
  return waited;
}

void Descriptor::wake(Side side) {
  rt::G* g = slot(side).wake(false);
  if (g == nullptr) return;
  rt::ready(g);
  if (!in_memory_)
    rt::io_wait_ends();  // after ready(): a goroutine that neither waits nor can run would look like a deadlock
}

// A deadline has expired, which is written. A wait that this does not concern looks again, and continues.
void Descriptor::wake_all_ruled(Side side) {
  wake(side);
  if (ruled_by_.load(std::memory_order_seq_cst) == Rule::kOwn) [[likely]]
    return;
  wake(side == Side::kRead ? Side::kWrite : Side::kRead);
}

void Descriptor::wake_reader(void* self) { static_cast<Descriptor*>(self)->wake_all_ruled(Side::kRead); }
void Descriptor::wake_writer(void* self) { static_cast<Descriptor*>(self)->wake_all_ruled(Side::kWrite); }

Descriptor* Descriptor::from_cookie(std::uint64_t cookie) {
  Descriptor* d = DescriptorPool::at(static_cast<std::uint32_t>(cookie));
  return d != nullptr && d->cookie() == cookie ? d : nullptr;
}

void Descriptor::report_hang_up(std::uint64_t sequence, const Error* why) {
  std::uint64_t word = on_hang_up_.load();
  do {
    if (word == 0 || rt::tag_of(word) != (sequence & 0xffff)) return;
  } while (!on_hang_up_.compare_exchange_weak(word, 0));
  rt::address_of<HangUpHandler>(word)->hung_up(why);
}

// Either this thread sees the hang-up (or the close), or the thread that reports it sees the handler: both write first,
// and look then, in one order for all threads.
void Descriptor::watch_hang_up(HangUpHandler* handler) {
  const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  if (on_hang_up_.exchange(rt::tagged(handler, sequence)) != 0)
    rt::fatal("two PeerWatches for one connection");
  // The registration may have ended with an earlier runtime.
  if (generation_.load(std::memory_order_acquire) != Netpoller::generation()) (void)register_again("watch");
  if (!hung_up_.load() && !mutex_.closed()) return;
  if (in_memory_) return report_hang_up(sequence);
  // An earlier event may have been urgent data, which has been dealt with.
  const Result<long> closed =
      control("poll", [](int fd) { return static_cast<long>(Poller::has_ended(fd)); });
  if (!closed || *closed != 0) report_hang_up(sequence);
}

Descriptor::Woken Descriptor::deliver(Events events, std::uint64_t cookie) {
  // Set hung_up_ before the wake-up: after a hang-up, a woken reader must not conclude anything from a short
  // read.
  if (events.hung_up) {
    hung_up_.store(true);
    report_hang_up(cookie >> 32);
  }
  return wake_for(events);
}

Descriptor::Woken Descriptor::wake_for(Events events) {
  return {events.readable ? reader_.wake(true) : nullptr, events.writable ? writer_.wake(true) : nullptr};
}

void Descriptor::notify(Events events, std::uint64_t cookie) {
  if (cookie != this->cookie()) return;  // closed
  if (events.hung_up) report_hang_up(cookie >> 32);
  const Woken woken = wake_for(events);
  for (rt::G* g : {woken.reader, woken.writer}) {
    if (g != nullptr) rt::ready(g);
  }
}

// recv(2) goes to the socket directly, and takes less time than read(2), which goes by way of the file. What is no socket, such as
// a pipe, has only the latter. Of no bytes, read(2) waits for nothing.
long Descriptor::receive(std::span<std::byte> into) {
  if (is_socket_ && !into.empty()) [[likely]] {
    const long n = sys::recvfrom(fd_, into.data(), into.size(), 0, nullptr, nullptr);
    if (n != -ENOTSOCK) return n;
    is_socket_ = false;
  }
  return sys::read(fd_, into.data(), into.size());
}

Result<std::size_t> Descriptor::read_locked(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) {
  if (Result<void> may = may_begin(Side::kRead, "read", ctx); !may) return std::unexpected(may.error());
  for (;;) {
    if (drained_ && !hung_up_.load(std::memory_order_acquire)) {
      const Result<void> waited = wait_to_read(ctx);
      // The edge is consumed even if the system call fails. After a wait that failed, the next read asks the
      // kernel: bytes may have arrived while their edge is still on its way.
      drained_ = false;
      if (!waited) return std::unexpected(waited.error());
    }
    if (lazy != nullptr) into = lazy->take();
    const long n = receive(into);
    if (n >= 0) {
      drained_ = Poller::kReportsUrgentData && static_cast<std::size_t>(n) < into.size();
      return static_cast<std::size_t>(n);
    }
    if (lazy != nullptr) lazy->give_back();
    if (n == -EINTR) continue;
    if (n != -EAGAIN) return std::unexpected(Error::from_errno(static_cast<int>(-n), "read"));
    if (Result<void> waited = wait_to_read(ctx); !waited) return std::unexpected(waited.error());
    drained_ = false;
  }
}

Result<std::size_t> Descriptor::read(std::span<std::byte> into, const Context* ctx) {
  rt::parking_point();
  const Use use(*this, Side::kRead, ctx);
  if (!use) return std::unexpected(refusal("read", ctx));
  return read_locked(into, nullptr, ctx);
}

Result<std::size_t> Descriptor::read(LazyBuffer& into, const Context* ctx) {
  rt::parking_point();
  const Use use(*this, Side::kRead, ctx);
  if (!use) return std::unexpected(refusal("read", ctx));
  return read_locked({}, &into, ctx);
}

Result<std::size_t> Descriptor::read_now(std::span<std::byte> into) {
  const Use use(*this, Side::kRead, nullptr);
  if (!use) return std::unexpected(refusal("read", nullptr));
  if (Result<void> may = may_begin(Side::kRead, "read", nullptr); !may) return std::unexpected(may.error());
  long n = -EAGAIN;
  if (!drained_ || hung_up_.load(std::memory_order_acquire)) {
    do n = receive(into);
    while (n == -EINTR);
    // As in read_locked(). Where nothing was there, an edge announces the next byte.
    drained_ =
        n == -EAGAIN || (Poller::kReportsUrgentData && n >= 0 && static_cast<std::size_t>(n) < into.size());
  }
  if (n < 0) return std::unexpected(Error::from_errno(static_cast<int>(-n), "read"));
  return static_cast<std::size_t>(n);
}

Result<void> Descriptor::write_all(std::span<const std::byte> data, const Context* ctx) {
  return write_on(data, ctx);
}

Result<void> Descriptor::write_on(std::span<const std::byte>& data, const Context* ctx) {
  rt::parking_point();
  const Use use(*this, Side::kWrite, ctx);
  if (!use) return std::unexpected(refusal("write", ctx));
  if (Result<void> may = may_begin(Side::kWrite, "write", ctx); !may) return may;
  return write_locked(data, 0, ctx);
}

Result<void> Descriptor::write_locked(std::span<const std::byte>& data, int flags, const Context* ctx) {
  while (!data.empty()) {
    const long n = sys::sendto(fd_, data.data(), data.size(), MSG_NOSIGNAL | flags, nullptr, 0);
    if (n >= 0) {
      if (write_waited_us_ != 0) [[unlikely]]
        pay_for_waits(static_cast<std::size_t>(n));
      data = data.subspan(static_cast<std::size_t>(n));
    } else if (n == -EAGAIN) {
      if (Result<void> waited = wait_to_write(ctx); !waited) return waited;
    } else if (n != -EINTR) {
      return std::unexpected(Error::from_errno(static_cast<int>(-n), "write"));
    }
  }
  return {};
}

Result<void> Descriptor::write_all(std::span<struct iovec> pieces, const Context* ctx) {
  constexpr std::size_t kPiecesMax = 1024;  // IOV_MAX
  rt::parking_point();
  const Use use(*this, Side::kWrite, ctx);
  if (!use) return std::unexpected(refusal("write", ctx));
  if (Result<void> may = may_begin(Side::kWrite, "write", ctx); !may) return may;
  for (;;) {
    while (!pieces.empty() && pieces.front().iov_len == 0) pieces = pieces.subspan(1);
    if (pieces.empty()) return {};
    struct msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = std::min(pieces.size(), kPiecesMax);
    const long n = sys::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (n == -EAGAIN) {
      if (Result<void> waited = wait_to_write(ctx); !waited) return waited;
    } else if (n < 0 && n != -EINTR) {
      return std::unexpected(Error::from_errno(static_cast<int>(-n), "write"));
    }
    if (n > 0 && write_waited_us_ != 0) [[unlikely]]
      pay_for_waits(static_cast<std::size_t>(n));
    for (auto left = static_cast<std::size_t>(std::max(n, 0L)); left > 0;) {
      struct iovec& first = pieces.front();
      const std::size_t taken = std::min(left, first.iov_len);
      first.iov_base = static_cast<std::byte*>(first.iov_base) + taken;
      first.iov_len -= taken;
      left -= taken;
      if (first.iov_len == 0) pieces = pieces.subspan(1);
    }
  }
}

}  // namespace tuza::net
