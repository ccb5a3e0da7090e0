// Public header, part of <tuza/net.h>.
//
// Our end of a pipe to or from a child process (netpoll/process.h): calls that block only the goroutine.
//
//     tuza::net::BufReader in(process.out());
//     for (auto line : in.lines()) handle(line);
//
// Ownership: an end owns its descriptor and closes it on destruction. It can be moved while no call uses it. An end that
// was closed, moved from, or made without a pipe returns Errc::kClosed from every call.
//
// Thread-safe: any goroutine may call any function at any time. Reads exclude each other, and so do writes. close() may be
// called while others read or write: their calls return Errc::kClosed. Goroutines only, except for close() and the
// destructor.
//
// Errors are values: Errc::kClosed, Errc::kTimeout, the context's cause, or the system's error. A call with a Context
// returns the context's cause when the context ends; the pipe stays usable. A program that handles SIGPIPE itself gets it if
// it writes to a pipe without a reader; all others get EPIPE only.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza {

namespace net {
class Descriptor;
}
namespace detail {
struct PipeEnds;
}

class PipeReader {
 public:
  PipeReader() = default;

  // Waits for at least one byte; returns the number of bytes read, 0 when all writers have closed their ends. Parks.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into) {
    return read(Context::background(), into);
  }
  [[nodiscard]] Result<std::size_t> read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  [[nodiscard]] Result<std::size_t> read(const Context& ctx, std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> read(const Context& ctx, std::span<char> into) {
    return read(ctx, std::as_writable_bytes(into));
  }
  // Reads to the end. EFBIG if that is more than `bytes_max`; the bytes read so far are then lost. Parks.
  static constexpr std::size_t kReadAllBytesMax = std::size_t{16} << 20;
  [[nodiscard]] Result<std::string> read_all(std::size_t bytes_max = kReadAllBytesMax) {
    return read_all(Context::background(), bytes_max);
  }
  [[nodiscard]] Result<std::string> read_all(const Context& ctx, std::size_t bytes_max = kReadAllBytesMax);

  // From this time of tuza::now() on, reads fail with Errc::kTimeout, waiting ones included. It stays until it is set again;
  // TimePoint::max() removes it. Does not park.
  using TimePoint = std::chrono::steady_clock::time_point;
  void set_deadline(TimePoint when);
  // Does not park. May be called repeatedly.
  void close();

 private:
  friend struct detail::PipeEnds;
  explicit PipeReader(std::shared_ptr<net::Descriptor> descriptor) : descriptor_(std::move(descriptor)) {}

  std::shared_ptr<net::Descriptor> descriptor_;
};

class PipeWriter {
 public:
  PipeWriter() = default;

  // Writes all of `data`, or returns an error after a part may have been written: EPIPE if all readers have closed their
  // ends. Parks.
  [[nodiscard]] Result<void> write_all(std::span<const std::byte> data) {
    return write_all(Context::background(), data);
  }
  [[nodiscard]] Result<void> write_all(std::string_view text) {
    return write_all(std::as_bytes(std::span(text)));
  }
  [[nodiscard]] Result<void> write_all(const Context& ctx, std::span<const std::byte> data);
  [[nodiscard]] Result<void> write_all(const Context& ctx, std::string_view text) {
    return write_all(ctx, std::as_bytes(std::span(text)));
  }

  // As PipeReader::set_deadline(), for writes.
  using TimePoint = std::chrono::steady_clock::time_point;
  void set_deadline(TimePoint when);
  // The reader finds the end of the stream. Does not park. May be called repeatedly.
  void close();

 private:
  friend struct detail::PipeEnds;
  explicit PipeWriter(std::shared_ptr<net::Descriptor> descriptor) : descriptor_(std::move(descriptor)) {}

  std::shared_ptr<net::Descriptor> descriptor_;
};

}  // namespace tuza
