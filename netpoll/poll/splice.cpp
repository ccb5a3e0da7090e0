// Descriptors and splice(2): see poll/splice_pipe.h.
#include <tuza/netpoll/poll/splice.h>

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/poll/poller.h>
#include <tuza/netpoll/poll/splice_pipe.h>

#include <algorithm>
#include <cerrno>

namespace tuza::net {
namespace {

// More than fits into the pipe.
constexpr std::uint64_t kSplicedAtOnceMax = 1 << 20;

// Some kinds of sockets have no splice(2), and some filters of system calls refuse it.
bool cannot_splice(const Error& error) {
  return error.is(std::errc::invalid_argument) || error.is(std::errc::function_not_supported) ||
         error.is(std::errc::operation_not_supported) || error.is(std::errc::operation_not_permitted);
}

}  // namespace

Spliced splice_received(Descriptor& to, Descriptor& from, std::uint64_t most, const Context& ctx,
                        const std::function<void(std::size_t)>& taken) {
  Spliced spliced;
  SplicePipe pipe = SplicePipe::take();
  while (pipe && spliced.bytes < most) {
    const Result<std::size_t> n = from.splice_to(pipe, most - spliced.bytes, &ctx);
    if (!n && cannot_splice(n.error())) {
      spliced.possible = false;
      break;
    }
    if (!n) {
      spliced.read_error = n.error();
      break;
    }
    if (*n == 0) break;
    spliced.bytes += *n;
    if (taken) taken(*n);
    if (const Result<void> sent = to.splice_from(pipe, &ctx); !sent) {
      spliced.write_error = sent.error();
      break;
    }
  }
  return spliced;
}

Result<std::size_t> Descriptor::splice_to(SplicePipe& pipe, std::uint64_t most, const Context* ctx) {
  rt::parking_point();
  const Use use(*this, Side::kRead, ctx);
  if (!use) return std::unexpected(refusal("read", ctx));
  if (Result<void> may = may_begin(Side::kRead, "read", ctx); !may) return std::unexpected(may.error());
  for (;;) {
    const long n = pipe.fill_from(fd_, std::min(most, kSplicedAtOnceMax));
    if (n >= 0) return static_cast<std::size_t>(n);
    if (n == -EAGAIN) {
      // As after a short read: the next read waits for an edge first. Urgent data, at which splice stops for ever, is
      // reported by one, and a read goes on behind it.
      drained_ = Poller::kReportsUrgentData;
      return 0;
    }
    if (n != -EINTR) return std::unexpected(Error::from_errno(static_cast<int>(-n), "read"));
  }
}

Result<void> Descriptor::wait_for_data(const Context* ctx) {
  rt::parking_point();
  const Use use(*this, Side::kRead, ctx);
  if (!use) return std::unexpected(refusal("read", ctx));
  if (Result<void> may = may_begin(Side::kRead, "read", ctx); !may) return may;
  if (!drained_ || hung_up_.load(std::memory_order_acquire)) return {};
  drained_ = false;  // as in read_locked(): whether or not the wait fails, the next call asks the kernel
  return wait_to_read(ctx);
}

Result<void> Descriptor::splice_from(SplicePipe& pipe, const Context* ctx) {
  rt::parking_point();
  const Use use(*this, Side::kWrite, ctx);
  if (!use) return std::unexpected(refusal("write", ctx));
  if (Result<void> may = may_begin(Side::kWrite, "write", ctx); !may) return may;
  while (pipe.bytes() > 0) {
    const long n = pipe.drain_to(fd_);
    if (n > 0) {
      if (write_waited_us_ != 0) [[unlikely]]
        pay_for_waits(static_cast<std::size_t>(n));
    } else if (n == -EAGAIN) {
      if (Result<void> waited = wait_to_write(ctx); !waited) return waited;
    } else if (n != -EINTR) {
      return std::unexpected(Error::from_errno(n == 0 ? EIO : static_cast<int>(-n), "write"));
    }
  }
  return {};
}

}  // namespace tuza::net
