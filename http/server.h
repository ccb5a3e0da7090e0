// Public header, part of <tuza/http.h>.
//
// An HTTP/1.1 server with a goroutine per connection.
//
//     int main() {
//       return tuza::run([] {
//         tuza::http::Router router;
//         router.handle("GET /hello/{name}", [](tuza::http::Request& req, tuza::http::ResponseWriter& res) {
//           res.text("Hello, " + req.path_value<std::string>("name") + "!\n");
//         });
//         return tuza::http::listen_and_serve("0.0.0.0:8080", std::move(router));
//       });
//     }
//
// Thread-safe, except for construction and destruction. Goroutines only.
#pragma once

#include <tuza/sched/detail/language.h>  // first

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

class BodyBudget;

class Server {
 public:
  // Throws std::invalid_argument if the handler is empty, or as check(options) does.
  explicit Server(Handler handler, ServerOptions options = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // serve() must have returned, and connections() must be zero: otherwise the process is terminated.
  ~Server();

  // Opens the listening socket; connections wait in its backlog until serve(). "127.0.0.1:80", ":80", or
  // "unix:/run/app.sock". An error if the server already has a socket, or after shutdown().
  [[nodiscard]] Result<void> listen(std::string_view address);
  // The same with a socket that is already open: a TLS listener, or one inherited from systemd.
  [[nodiscard]] Result<void> listen(net::Listener&& listener);
  // The listening address, with the system-chosen port if the port was 0; endpoint() is for TCP only. Call
  // them only after listen().
  [[nodiscard]] const net::Endpoint& endpoint() const;
  [[nodiscard]] const std::string& address() const;

  // Serves until shutdown(). Returns when the last connection has ended, or when shutdown() has given up (see
  // connections()); after shutdown() it returns at once. Call it only after listen(). Parks.
  [[nodiscard]] Result<void> serve();

  // Stops accepting, ends idle connections that send nothing within a moment, lets requests in flight finish
  // (their responses say "Connection: close"), and cuts off the remaining ones after
  // options.shutdown_timeout. A handler notices the cut-off when it reads or writes; shutdown() gives up on a
  // handler that does neither a second later. `why`, "SIGTERM", is for the causes of the requests' contexts. May be called only
  // once. Parks. True: nothing had to be cut off.
  bool shutdown(std::string why = {});

  // Number of open connections; after serve(), the number of abandoned handlers that still run.
  [[nodiscard]] std::size_t connections() const;
  // Connections, refused requests and timeouts so far. A goroutine may call it at any time.
  [[nodiscard]] ServerStats stats() const;

 private:
  [[nodiscard]] net::Server* listening() const;
  [[nodiscard]] net::Server& after_listen(const char* call) const;
  [[nodiscard]] Result<void> may_listen(std::string_view address) const TUZA_REQUIRES(mutex_);

  Handler handler_;
  const ServerOptions options_;
  ServerCounters counters_;
  const std::unique_ptr<BodyBudget> bodies_;
  mutable Mutex mutex_;
  bool shut_down_ TUZA_GUARDED_BY(mutex_) = false;
  std::unique_ptr<net::Server> server_ TUZA_GUARDED_BY(mutex_);  // set once
};

// Serves on `address` until SIGTERM or SIGINT, then shuts down gracefully; a second signal ends the process
// at once. Also returns an error (Errc::kTimeout) if the shutdown had to cut requests off. Objects used by handlers that
// still run a second later must outlive them. Parks.
[[nodiscard]] Result<void> listen_and_serve(std::string_view address, Handler handler,
                                            ServerOptions options = {});

}  // namespace tuza::http
