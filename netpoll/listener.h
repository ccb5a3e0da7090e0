// Public header, part of <tuza/net.h>.
//
// Listener: accepts connections, of TCP or on a Unix socket.
//
//     auto listener = tuza::net::listen("tcp", "127.0.0.1:7000").value();
//     while (auto conn = listener.accept()) {
//       tuza::go([conn = std::move(*conn)]() mutable { serve(conn); });
//     }
//
// net::serve() (netpoll/serve.h) is this loop, with limits and an orderly end.
//
// Ownership: a Listener owns its socket and closes it on destruction. It can be moved while no call uses it.
//
// Thread-safe: any goroutine may call any function at any time; any number may accept. close() may be called meanwhile:
// their calls return Errc::kClosed. Destroying the object during a call is not allowed.
//
// Errors are values, as those of a Conn (netpoll/conn.h).
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/detail/owners.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/result.h>

#include <memory>
#include <string>
#include <string_view>

namespace tuza {
class Context;
}

namespace tuza::net::testing {
class MemoryNetwork;
}

namespace tuza::net {

class Backlog;
class TlsServer;

struct ListenOptions {
  int backlog = 4096;       // connections that wait to be accepted; the system may impose a lower limit
  bool reuse_port = false;  // several sockets share one port; each gets a part of the connections
};

class Listener {
 public:
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  // Takes over a socket that already listens, for example from systemd (netpoll/inherited.h). Owns the socket
  // from then on, even on an error: not a TCP or Unix stream socket, or not listening. When this listener is
  // closed, the socket continues to listen for other processes that hold it, and the file of a Unix socket
  // stays.
  [[nodiscard]] static Result<Listener> adopt(int fd);

  // Returns the next connection. Parks. An error that concerns a single connection is not reported: accept()
  // waits for the next connection. Out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM): the
  // connection stays in the backlog; see serve() for how to handle that.
  [[nodiscard]] Result<Conn> accept();
  [[nodiscard]] Result<Conn> accept(const Context& ctx);
  // Ends waiting and later accept() calls with Errc::kClosed, and removes the file of a Unix socket. Does not
  // park.
  void close();

  // Connections accepted from now on use TLS. Call it only before the first accept().
  void use_tls(std::shared_ptr<TlsServer> tls);

  // The listening address, with the system-chosen port if the port was 0. TCP only: otherwise 0.0.0.0:0.
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  // The same as text, for all sockets: "127.0.0.1:80", "unix:/run/app.sock".
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  friend class SpareDescriptor;
  friend struct detail::ConnParts;
  friend class testing::MemoryNetwork;  // inserts its backlog
  friend Result<Listener> listen_unix(const Context& ctx, std::string_view path, int backlog);
  Listener(detail::DescriptorOwner descriptor, Endpoint endpoint, std::string address);
  [[nodiscard]] Result<Conn> accept_within(const Context* ctx);
  detail::DescriptorOwner descriptor_;
  Endpoint endpoint_;
  std::string address_;
  detail::UnixSocketFileOwner file_;  // null: no file, or not ours to remove
  std::shared_ptr<TlsServer> tls_;
  std::shared_ptr<Backlog> backlog_;  // in memory, instead of the socket's; null: the usual case
  bool adopted_ = false;              // other processes may hold the socket, too
};

// `network` is "tcp", "tcp4", "tcp6" or "unix".
//
// TCP: ":80" listens on every address; so does "[::]:80", for both IPv4 and IPv6 with "tcp". A name listens on
// its first IPv4 address, if it has one: "localhost:80" is 127.0.0.1. Parks if the host is a name: see resolve().
//
// Unix: the address is a path of at most 107 bytes. Write permission on the file allows connecting; the umask
// applies. An existing socket file is replaced if nobody listens on it, as after a crash; if a process
// listens on it, or the file is not a socket, the error is EADDRINUSE. Of processes of one user that start at once, one gets
// the file: while it starts, it locks a file PATH.tuza-lock, for which the others wait up to 2 s.
//
// Goroutines only.
[[nodiscard]] Result<Listener> listen(std::string_view network, std::string_view address,
                                      const ListenOptions& options = {});
// The same, but waits for the resolver, or for that lock, only until `ctx` ends, and gives up with its cause.
[[nodiscard]] Result<Listener> listen(const Context& ctx, std::string_view network, std::string_view address,
                                      const ListenOptions& options = {});

// The same with a single text: "unix:/run/app.sock", or a TCP address.
[[nodiscard]] Result<Listener> listen(std::string_view address, const ListenOptions& options = {});
[[nodiscard]] Result<Listener> listen(const Context& ctx, std::string_view address,
                                      const ListenOptions& options = {});

}  // namespace tuza::net
