// sendfile(2): from a file to a socket inside the kernel. While the writer is parked, its response takes no memory of the
// process, and what waits in the socket are references to the page cache.
//
// The disk may be slow. Each call is therefore a BlockingCall of unknown length: free if the pages are cached, and sysmon
// takes the P if they are not. Asking first (mincore, preadv2 with RWF_NOWAIT) would cost a system call, and the answer
// could be wrong by the time it is used.
#include <tuza/netpoll/file_slice.h>
#include <tuza/netpoll/poll/descriptor.h>

#include <tuza/netpoll/poll/sendfile.h>
#include <tuza/sched/blocking.h>

#include <algorithm>

namespace tuza::net {
namespace {

// What one call may send. Others wait for this P meanwhile: a peer with tiny segments makes the kernel work for milliseconds
// on a megabyte. Of 4,000 slow readers who arrive at once, others notice little up to here (p99 3 ms; with 1 MiB
// 190 ms); below it, large files cost more calls (128 KiB: 15 % of a file of 1 MiB).
constexpr std::uint64_t kSentAtOnceMax = 512 << 10;

long send_some(int socket, const FileSlice& slice) {
  const BlockingCall scope;
  return send_from_file(socket, slice.fd, slice.offset, std::min(slice.length, kSentAtOnceMax));
}

}  // namespace

Result<void> Descriptor::send_file(FileSlice& slice, std::string_view& head, const Context* ctx) {
  rt::parking_point();
  const Use use(*this, Side::kWrite, ctx);
  if (!use) return std::unexpected(refusal("write", ctx));
  if (Result<void> may = may_begin(Side::kWrite, "write", ctx); !may) return may;
  // The head leaves in one packet with the first bytes of the file.
  std::span<const std::byte> unsent = std::as_bytes(std::span(head));
  Result<void> result = write_locked(unsent, slice.length > 0 ? kMoreFollows : 0, ctx);
  head.remove_prefix(head.size() - unsent.size());
  while (result && slice.length > 0) {
    const long n = send_some(fd_, slice);
    if (n > 0) {
      if (write_waited_us_ != 0) [[unlikely]]
        pay_for_waits(static_cast<std::size_t>(n));
      slice.offset += static_cast<std::uint64_t>(n);
      slice.length -= static_cast<std::uint64_t>(n);
    } else if (n == 0) {
      result = std::unexpected(Error(Errc::kEndOfStream, "sendfile", "the file has become shorter"));
    } else if (n == -EAGAIN) {
      result = wait_to_write(ctx);
    } else if (n != -EINTR) {
      result = std::unexpected(Error::from_errno(static_cast<int>(-n), "sendfile"));
    }
  }
  return result;
}

}  // namespace tuza::net
