#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/file_slice.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/transport.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace tuza::net {
namespace {

// Two records of TLS, which leave in one system call.
constexpr std::size_t kCopiedAtOnce = 32 << 10;

// Some file systems (/proc, FUSE) cannot feed a pipe, which is what sendfile needs; some filters of system calls refuse it.
bool cannot_send_files(const Error& error) {
  return error.code() == std::errc::invalid_argument || error.code() == std::errc::function_not_supported ||
         error.code() == std::errc::operation_not_supported ||
         error.code() == std::errc::operation_not_permitted;
}

// The head lies in front of the first bytes: one write.
template <class Write>
Result<void> send_in_pieces(FileSlice& slice, std::string_view head, Write write) {
  const std::uint64_t most = head.size() + slice.length;
  const auto space = std::make_unique_for_overwrite<char[]>(std::min<std::uint64_t>(most, kCopiedAtOnce));
  while (!head.empty() || slice.length > 0) {
    const std::size_t of_head = std::min(head.size(), kCopiedAtOnce);
    if (of_head > 0) std::memcpy(space.get(), head.data(), of_head);
    head.remove_prefix(of_head);
    const std::size_t want = std::min<std::uint64_t>(slice.length, kCopiedAtOnce - of_head);
    const long n = tuza::detail::read_at(slice.fd, {space.get() + of_head, want}, slice.offset);
    if (n < 0) return std::unexpected(Error::from_errno(static_cast<int>(-n), "read"));
    const auto got = static_cast<std::size_t>(n);
    if (Result<void> written = write(std::string_view(space.get(), of_head + got)); !written) return written;
    slice.offset += got;
    slice.length -= got;
    if (got < want) {
      return std::unexpected(Error(Errc::kEndOfStream, "read", "the file has become shorter"));
    }
  }
  return {};
}

}  // namespace

Result<void> Conn::send_file_within(FileSlice& slice, std::string_view head, const Context* ctx) {
  if (!transport_) {
    Result<void> sent = descriptor_->send_file(slice, head, ctx);
    if (sent || !cannot_send_files(sent.error())) return sent;
  }
  return send_in_pieces(slice, head, [this, ctx](std::string_view data) {
    return ctx != nullptr ? write_all(*ctx, data) : write_all(data);
  });
}
Result<void> Conn::send_file(FileSlice& slice, std::string_view head) {
  return send_file_within(slice, head, nullptr);
}
Result<void> Conn::send_file(const Context& ctx, FileSlice& slice, std::string_view head) {
  return send_file_within(slice, head, &ctx);
}

}  // namespace tuza::net
