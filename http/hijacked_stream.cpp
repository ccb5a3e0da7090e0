#include <tuza/http/hijacked_stream.h>

#include <tuza/http/wire/input.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <cstring>

namespace tuza::http {

std::size_t HijackedStream::take_received(std::span<std::byte> into) {
  const std::size_t n = std::min(into.size(), received_->unread().size());
  if (n > 0) std::memcpy(into.data(), received_->unread().data(), n);
  received_->consume(n);
  return n;
}

Result<std::size_t> HijackedStream::read(std::span<std::byte> into) {
  if (const std::size_t n = take_received(into); n > 0) return n;
  return conn_->read(into);
}

Result<std::size_t> HijackedStream::read(const Context& ctx, std::span<std::byte> into) {
  if (Result<void> going_on = ctx.check(); !going_on) return std::unexpected(going_on.error());
  if (const std::size_t n = take_received(into); n > 0) return n;
  return conn_->read(ctx, into);
}

}  // namespace tuza::http
