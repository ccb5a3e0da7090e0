// A body that comes from a file. A small one is held back like any other, so that middleware may still change it; a larger
// one goes from the file to the carrier, or in pieces through the filter that middleware has installed. Likewise a part of a
// body that comes from another connection.
#include <tuza/http/serve/exchange.h>

#include <tuza/http/serve/body_filter.h>
#include <tuza/netpoll/files/file_calls.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>

namespace tuza::http {
namespace {

constexpr std::size_t kFilteredPiece = 16 << 10;

Result<void> take(net::FileSlice& slice, long got, std::size_t wanted) {
  if (got < 0) return std::unexpected(Error::from_errno(static_cast<int>(-got), "read"));
  slice.offset += static_cast<std::uint64_t>(got);
  slice.length -= static_cast<std::uint64_t>(got);
  if (static_cast<std::size_t>(got) == wanted) return {};
  return std::unexpected(Error(Errc::kEndOfStream, "read", "the file has become shorter"));
}

}  // namespace

Result<void> Exchange::write_file(net::FileSlice slice, const Context* ctx) {
  if (response_.finished || !response_.declared_length ||
      slice.length > *response_.declared_length - response_.written) {
    throw std::logic_error("a file is written without a Content-Length, or beyond it");
  }
  if (broken()) return std::unexpected(Error(Errc::kClosed, "write"));
  const std::uint64_t whole = slice.length;
  if (head_only() || whole == 0) {
    response_.written += whole;
    return {};
  }
  Result<void> result;
  if (!response_.started && buffers_->body.size() + whole <= kHeldBackMax) {
    result = hold_back(slice);
  } else {
    if (!response_.started) begin_stream(ctx);
    result = filter_ != nullptr ? filter_file(slice, ctx) : send_file(slice, ctx);
  }
  response_.written += whole - slice.length;
  if (!result) response_.close = true;
  return result;
}

Result<void> Exchange::hold_back(net::FileSlice& slice) {
  std::string& body = buffers_->body;
  const std::size_t before = body.size(), wanted = slice.length;
  body.resize(before + wanted);
  const long n = tuza::detail::read_at(slice.fd, std::span(body).subspan(before), slice.offset);
  body.resize(before + static_cast<std::size_t>(std::max(n, 0L)));
  return take(slice, n, wanted);
}

Result<void> Exchange::filter_file(net::FileSlice& slice, const Context* ctx) {
  const auto space = std::make_unique_for_overwrite<char[]>(kFilteredPiece);
  while (slice.length > 0) {
    const std::size_t wanted = std::min<std::uint64_t>(slice.length, kFilteredPiece);
    const long n = tuza::detail::read_at(slice.fd, {space.get(), wanted}, slice.offset);
    if (n > 0) {
      const std::string_view piece(space.get(), static_cast<std::size_t>(n));
      if (const Result<void> filtered = filter_->write(piece, false, ctx); !filtered) return filtered;
    }
    if (const Result<void> taken = take(slice, n, wanted); !taken) return taken;
  }
  return {};
}

net::Spliced Exchange::splice_body(net::Conn& from, std::uint64_t most, const Context& ctx) {
  const bool plain = response_.started && !response_.finished && filter_ == nullptr && !head_only() &&
                     response_.declared_length && most <= *response_.declared_length - response_.written;
  if (!plain || broken()) return {.possible = false};
  net::Spliced spliced = splice_from(from, most, ctx);
  response_.written += spliced.bytes;
  return spliced;
}

}  // namespace tuza::http
