// Public header.
//
// A connection as a synchronous stream of Asio: its algorithms, and those of libraries on top of it, read and write a
// net::Conn, TLS included, and park the goroutine instead of blocking a thread.
//
//     tuza::AsioSyncStream stream(conn);
//     asio::write(stream, asio::buffer(text));
//     asio::read_until(stream, asio::dynamic_buffer(line), "\n");
//
// Errors are those of Asio: error::eof at the end of the stream, error::timed_out for a deadline of the connection or of
// the context, error::operation_aborted if the connection was closed or the context cancelled; others are the
// system's. Only the synchronous operations exist: framework/asio_bridge.h is for the others. One goroutine may read
// while another one writes.
#pragma once

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/system_executor.hpp>

#include <tuza/framework/detail/sync_stream.h>

#include <system_error>

namespace tuza {
namespace detail {

struct AsioStreams {
  using ErrorCode = std::error_code;
  using SystemError = std::system_error;
  using Executor = asio::system_executor;
  using MutableBuffer = asio::mutable_buffer;
  using ConstBuffer = asio::const_buffer;

  static ErrorCode eof() { return asio::error::eof; }
  static ErrorCode timed_out() { return asio::error::timed_out; }
  static ErrorCode aborted() { return asio::error::operation_aborted; }
  // The library has a category of its own for errors of the system.
  static ErrorCode code(const std::error_code& from) {
    if (from.category() != std::system_category()) return from;
    return {from.value(), asio::error::get_system_category()};
  }
  template <class Buffers>
  static auto begin(const Buffers& buffers) {
    return asio::buffer_sequence_begin(buffers);
  }
  template <class Buffers>
  static auto end(const Buffers& buffers) {
    return asio::buffer_sequence_end(buffers);
  }
};

}  // namespace detail

using AsioSyncStream = detail::BasicSyncStream<detail::AsioStreams>;

}  // namespace tuza
