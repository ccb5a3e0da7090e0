// Descriptors and splice(2): see poll/splice_pipe.h.
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/poll/poller.h>
#include <tuza/netpoll/poll/splice_pipe.h>

#include <cerrno>

namespace tuza::net {
namespace {

// More than fits into the pipe.
constexpr std::size_t kSplicedAtOnceMax = 1 << 20;

}  // namespace

Result<std::size_t> Descriptor::splice_to(SplicePipe& pipe, const Context* ctx) {
  rt::parking_point();
  const Use use(*this, Side::kRead, ctx);
  if (!use) return std::unexpected(refusal("read", ctx));
  if (Result<void> may = may_begin(Side::kRead, "read", ctx); !may) return std::unexpected(may.error());
  for (;;) {
    const long n = pipe.fill_from(fd_, kSplicedAtOnceMax);
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
