#include <tuza/netpoll/memory/transport.h>

#include <sys/uio.h>
#include <tuza/netpoll/socket/conn_parts.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tuza::net::memory {

Result<std::size_t> MemoryTransport::read(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) {
  std::size_t got = 0;
  const auto step = [&](std::size_t&) -> Result<bool> {
    if (lazy != nullptr) {
      if (!link_->may_read(end_)) return false;
      into =
          lazy->take();  // allocates: not under the lock of the link. What is there stays: nobody else reads
    }
    const Link::Outcome outcome = link_->read(end_, into);
    if (lazy != nullptr && (outcome.error || !outcome.done)) lazy->give_back();
    if (outcome.error) return std::unexpected(Error(outcome.error, "read"));
    got = outcome.bytes;
    return outcome.done;
  };
  const Result<void> read = descriptor_.transfer(Link::Side::kRead, step, ctx);
  if (!read) return std::unexpected(read.error());
  return got;
}

Result<void> MemoryTransport::write_all(std::span<struct iovec> pieces, const Context* ctx, bool /*last*/) {
  const auto step = [&](std::size_t& moved) -> Result<bool> {
    while (!pieces.empty()) {
      struct iovec& piece = pieces.front();
      auto* const data = static_cast<std::byte*>(piece.iov_base);
      const Link::Outcome outcome = link_->write(end_, {data, piece.iov_len});
      if (outcome.error) return std::unexpected(Error(outcome.error, "write"));
      moved += outcome.bytes;
      piece = {data + outcome.bytes, piece.iov_len - outcome.bytes};
      if (outcome.done) {
        pieces = pieces.subspan(1);
      } else if (outcome.bytes == 0) {
        return false;
      }
    }
    return true;
  };
  return descriptor_.transfer(Link::Side::kWrite, step, ctx);
}

Result<std::size_t> MemoryTransport::try_write(std::span<const std::byte> data) {
  Link::Outcome outcome;
  const Result<long> tried = descriptor_.control("write", [&](int) {
    outcome = link_->write(end_, data);
    return 0L;
  });
  if (!tried) return std::unexpected(tried.error());
  if (outcome.error) return std::unexpected(Error(outcome.error, "write"));
  return outcome.bytes;
}

Result<void> MemoryTransport::close_write() {
  const Result<long> ended = descriptor_.control(
      "shutdown", [this](int) -> long { return link_->end_stream(end_) ? 0 : -ENOTCONN; });
  if (!ended) return std::unexpected(ended.error());
  return {};
}

long MemoryTransport::receive(std::span<char> into, bool takes) {
  const Link::Outcome outcome = link_->read(end_, std::as_writable_bytes(into), takes);
  if (outcome.error)
    return -(outcome.error.category() == std::system_category() ? outcome.error.value() : EIO);
  return outcome.done ? static_cast<long>(outcome.bytes) : -EAGAIN;
}

Result<ConnPair> connect_in_memory(const Endpoint& client, const Endpoint& server, std::size_t buffer_bytes) {
  const auto link = std::make_shared<Link>(std::max<std::size_t>(buffer_bytes, 1));
  const auto end = [&](int number, const Endpoint& local, const Endpoint& remote) -> Result<Conn> {
    detail::DescriptorOwner descriptor(Descriptor::open_in_memory());
    if (descriptor == nullptr) return std::unexpected(Error::from_errno(ENOMEM, "dial", to_string(server)));
    detail::TransportOwner transport(new MemoryTransport(link, number, *descriptor, local, remote));
    return detail::ConnParts::make(std::move(descriptor), std::move(transport), remote);
  };
  Result<Conn> here = end(0, client, server);
  if (!here) return std::unexpected(here.error());
  Result<Conn> there = end(1, server, client);
  if (!there) return std::unexpected(there.error());
  return ConnPair{*std::move(here), *std::move(there)};
}

}  // namespace tuza::net::memory
