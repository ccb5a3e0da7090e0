// A net::Conn as a stream of Asio, for its synchronous algorithms. Part of framework/asio_sync_stream.h and
// framework/boost_sync_stream.h: `Library` is standalone Asio or Boost's.
#pragma once

#include <sys/uio.h>
#include <tuza/netpoll/conn.h>
#include <tuza/sched/sync/context.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace tuza::detail {

template <class Library>
class BasicSyncStream {
 public:
  using ErrorCode = typename Library::ErrorCode;
  using executor_type = typename Library::Executor;

  // Calls end when `ctx` ends. `conn` must outlive the stream.
  explicit BasicSyncStream(net::Conn& conn, Context ctx = Context::background())
      : conn_(&conn), ctx_(std::move(ctx)) {}

  [[nodiscard]] net::Conn& conn() { return *conn_; }
  // Asio and Beast want a stream to have one; nothing runs on it.
  executor_type get_executor() noexcept { return {}; }

  // Reads at least one byte, unless the buffers are empty; the library's error::eof at the end. Parks.
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, ErrorCode& error) {
    error = {};
    for (auto at = Library::begin(buffers); at != Library::end(buffers); ++at) {
      const typename Library::MutableBuffer buffer(*at);
      if (buffer.size() == 0) continue;
      const Result<std::size_t> n =
          conn_->read(ctx_, std::span(static_cast<std::byte*>(buffer.data()), buffer.size()));
      if (!n) return fail(error, n.error());
      if (*n == 0) error = Library::eof();
      return *n;
    }
    return 0;
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    ErrorCode error;
    const std::size_t n = read_some(buffers, error);
    if (error) throw typename Library::SystemError(error);
    return n;
  }

  // Writes all of the first kPieces buffers. Parks.
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, ErrorCode& error) {
    error = {};
    std::array<struct iovec, kPieces> pieces;
    std::size_t count = 0, bytes = 0;
    for (auto at = Library::begin(buffers); at != Library::end(buffers) && count < kPieces; ++at) {
      const typename Library::ConstBuffer buffer(*at);
      if (buffer.size() == 0) continue;
      pieces[count++] = {const_cast<void*>(buffer.data()), buffer.size()};
      bytes += buffer.size();
    }
    if (count == 0) return 0;
    const Result<void> written = conn_->writev_all(ctx_, std::span(pieces).first(count));
    return written ? bytes : fail(error, written.error());
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    ErrorCode error;
    const std::size_t n = write_some(buffers, error);
    if (error) throw typename Library::SystemError(error);
    return n;
  }

 private:
  static constexpr std::size_t kPieces = 16;

  static std::size_t fail(ErrorCode& error, const Error& why) {
    if (why.timeout()) {
      error = Library::timed_out();
    } else if (why.cancelled() || why.closed()) {
      error = Library::aborted();
    } else if (why.is(Errc::kEndOfStream)) {
      error = Library::eof();
    } else {
      error = Library::code(why.code());
    }
    return 0;
  }

  net::Conn* conn_;
  Context ctx_;
};

}  // namespace tuza::detail
