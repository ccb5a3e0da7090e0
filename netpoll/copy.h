// Public header, part of <tuza/net.h>.
//
// From one stream to another.
//
//     tuza::net::copy(conn, file);                 // everything that is left of the file
//     tuza::net::relay(client, server);            // both directions, until both have ended
#pragma once

#include <tuza/netpoll/buf_reader.h>
#include <tuza/netpoll/buf_writer.h>
#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tuza::net {

namespace detail {
inline constexpr std::size_t kCopyBytes = 32 << 10;

template <class Read, class Write>
[[nodiscard]] Result<std::uint64_t> copy_by(Read read, Write write) {
  const auto space = std::make_unique_for_overwrite<std::byte[]>(kCopyBytes);
  std::uint64_t copied = 0;
  for (;;) {
    const Result<std::size_t> n = read(std::span(space.get(), kCopyBytes));
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return copied;
    const Result<void> written = write(std::span<const std::byte>(space.get(), *n));
    if (!written) return std::unexpected(written.error());
    copied += *n;
  }
}
}  // namespace detail

// Reads `from` to its end, and writes everything to `to`: a Conn, a File, a BufReader, or what has the same calls.
// Returns the number of bytes. Neither is closed. After an error, a part may have been written. Parks.
template <Writable To, Readable From>
[[nodiscard]] Result<std::uint64_t> copy(To& to, From& from) {
  return detail::copy_by([&from](std::span<std::byte> into) { return from.read(into); },
                         [&to](std::span<const std::byte> data) { return to.write_all(data); });
}

// The same between two connections, until `ctx` ends.
[[nodiscard]] Result<std::uint64_t> copy(const Context& ctx, Conn& to, Conn& from);

struct Relayed {
  std::uint64_t first_to_second = 0, second_to_first = 0;  // bytes
};

// Copies in both directions. The end of one direction is passed on by close_write(), and the other one continues. An error
// in one direction closes both connections: the other peer sees a reset if this one's connection has broken off, and the end
// of the stream if it is the caller that ends the relay, by `ctx`, a deadline or close(), or if TLS ends without a
// close_notify, as with many clients. Returns when both directions have ended: the numbers of bytes, or the first error.
// Uses one goroutine besides the caller. Parks.
//
// Between plain sockets on Linux, long transfers go by splice(2): the bytes do not enter the process, at half the CPU time.
// That takes two descriptors per direction while there is data to move; where none are to be had, it copies. A program that
// handles SIGPIPE itself gets it here if a peer has closed. ENOMEM: there is no stack for the goroutine of the second
// direction.
[[nodiscard]] Result<Relayed> relay(Conn& first, Conn& second);

struct RelayOptions {
  // When nothing has moved in either direction for this time (and at most a quarter more), the relay ends with an error
  // timeout(). A peer that has vanished without a word is noticed by nothing else. 0: it may be quiet for ever.
  std::chrono::milliseconds idle_timeout{0};
};
// The same. The end of `ctx` is an error.
[[nodiscard]] Result<Relayed> relay(const Context& ctx, Conn& first, Conn& second,
                                    const RelayOptions& options = {});

}  // namespace tuza::net
