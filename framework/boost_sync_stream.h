// Public header.
//
// A connection as a synchronous stream of Boost.Asio: framework/asio_sync_stream.h for boost::asio. All that is said
// there holds here. Beast's HTTP and WebSocket run over it:
//
//     tuza::BoostSyncStream stream(conn);
//     boost::beast::http::write(stream, request);
//     boost::beast::http::read(stream, buffer, response);
//
//     boost::beast::websocket::stream<tuza::BoostSyncStream> socket(conn);
//     socket.handshake("example.com", "/chat");
//
// Needs Boost 1.81 or newer, of which Tuza itself uses nothing: only its headers, and only here.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/system_error.hpp>

#include <tuza/framework/detail/sync_stream.h>

#include <system_error>

namespace boost::beast {
enum class role_type;  // so that Beast need not be included here
}

namespace tuza {
namespace detail {

struct BoostStreams {
  using ErrorCode = boost::system::error_code;
  using SystemError = boost::system::system_error;
  using Executor = boost::asio::system_executor;
  using MutableBuffer = boost::asio::mutable_buffer;
  using ConstBuffer = boost::asio::const_buffer;

  static ErrorCode eof() { return boost::asio::error::eof; }
  static ErrorCode timed_out() { return boost::asio::error::timed_out; }
  static ErrorCode aborted() { return boost::asio::error::operation_aborted; }
  // The library has a category of its own for errors of the system.
  static ErrorCode code(const std::error_code& from) {
    if (from.category() != std::system_category()) return from;
    return {from.value(), boost::asio::error::get_system_category()};
  }
  template <class Buffers>
  static auto begin(const Buffers& buffers) {
    return boost::asio::buffer_sequence_begin(buffers);
  }
  template <class Buffers>
  static auto end(const Buffers& buffers) {
    return boost::asio::buffer_sequence_end(buffers);
  }
};

}  // namespace detail

using BoostSyncStream = detail::BasicSyncStream<detail::BoostStreams>;

namespace detail {
// Beast calls this, found by its argument, when a WebSocket ends.
inline void teardown(boost::beast::role_type, BasicSyncStream<BoostStreams>& stream,
                     boost::system::error_code& error) {
  stream.conn().close();
  error = {};
}
}  // namespace detail

}  // namespace tuza
