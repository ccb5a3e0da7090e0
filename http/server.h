// Public header, part of <tuza/http.h>.
//
// An HTTP/1.1 server: a goroutine per connection.
//
//     int main() {
//       return tuza::run([] {
//         tuza::http::Router router;
//         router.handle("GET /hello/{name}", [](tuza::http::Request& req, tuza::http::ResponseWriter& res) {
//           res.text("Hello, " + std::string(req.path_value("name")) + "!\n");
//         });
//         return tuza::http::listen_and_serve("0.0.0.0:8080", std::move(router));
//       });
//     }
//
// Thread-safe, but for construction and destruction. Goroutines only.
#pragma once

#include <tuza/http/handler.h>
#include <tuza/http/options.h>
#include <tuza/http/router.h>
#include <tuza/http/server_stats.h>
#include <tuza/netpoll/serve.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/mutex.h>

#include <memory>
#include <string>
#include <string_view>

namespace tuza::http {

class Server {
 public:
  // Throws std::invalid_argument if there is no handler.
  explicit Server(Handler handler, ServerOptions options = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // serve() must have returned, and connections() be zero: otherwise the process ends.
  ~Server();

  // Opens the listening socket; connections wait in its backlog until serve(). "127.0.0.1:80", ":80", or
  // "unix:/run/app.sock". An error if it has one, or after shutdown().
  Result<void> listen(std::string_view address);
  // The same with a socket that is open already: one with TLS, or one inherited from systemd.
  Result<void> listen(net::Listener&& listener);
  // Where it listens, with the port that the system chose for port 0; endpoint() is for TCP only. After
  // listen().
  [[nodiscard]] const net::Endpoint& endpoint() const;
  [[nodiscard]] const std::string& address() const;

  // Serves until shutdown(); returns when the last connection has ended, or shutdown() has given up (see
  // connections()); at once after shutdown(). After listen(). Parks.
  Result<void> serve();

  // Stops accepting, ends idle connections that send nothing within a moment, lets requests in flight finish
  // (their responses say "Connection: close"), and cuts off what is left after options.shutdown_timeout. A
  // handler learns that when it reads or writes; one that does neither is given up a second later. Once.
  // Parks. True: nothing had to be cut off.
  bool shutdown();

  // Connections that are open; after serve(), those whose handlers have been given up and still run.
  [[nodiscard]] std::size_t connections() const;
  // Connections, requests refused, timeouts so far. A goroutine may ask at any time.
  [[nodiscard]] ServerStats stats() const;

 private:
  [[nodiscard]] net::Server* listening() const;
  [[nodiscard]] net::Server& after_listen(const char* call) const;
  [[nodiscard]] Result<void> may_listen(std::string_view address) const;

  Handler handler_;
  const ServerOptions options_;
  ServerCounters counters_;
  mutable Mutex mutex_;
  bool shut_down_ = false;               // guarded by mutex_
  std::unique_ptr<net::Server> server_;  // guarded by mutex_; set once
};

// Serves on `address` until SIGTERM or SIGINT, then shuts down gracefully; a second signal ends the process
// at once. An error also if requests have not ended a second after they were cut off; what their handlers
// refer to must outlive them. Parks.
Result<void> listen_and_serve(std::string_view address, Handler handler, ServerOptions options = {});

}  // namespace tuza::http
