// The life cycle of a service, from start to exit, on goroutines:
//
//     starting    signals are watched; the program sets itself up; listeners are opened
//     serving     the service manager has been told that the service is ready
//     draining    SIGTERM or SIGINT has arrived, or a listener has failed: /readyz answers 503, and after
//                 shutdown.delay no connection is accepted any more; requests in flight finish, and those that
//                 have not finished after shutdown.timeout are cut off
//
// A second SIGTERM or SIGINT ends the process at once, whatever it is doing. An end signal during the start takes
// effect when the program has set itself up, or after shutdown.timeout.
//
// The Service lives until the process ends: goroutines that were left behind may still access it.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/http/server.h>
#include <tuza/sched/detail/move_only_function.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/latch.h>

#include <atomic>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza {

class Metrics;
struct Listeners;

namespace net {
class SignalSet;
class TlsServer;
}  // namespace net

class Service {
 public:
  using Reread = std::function<std::expected<config::Config, config::Problems>()>;
  // The error is the text to print.
  struct Handlers {
    http::Handler service, admin;
  };
  using MakeHandlers = MoveOnlyFunction<std::expected<Handlers, std::string>()>;

  // Everything that `reread` uses must live until the process ends.
  Service(std::string name, config::Config config, Reread reread, std::shared_ptr<Metrics> metrics);

  // Returns the exit status. Parks.
  int run(MakeHandlers make_handlers);
  [[nodiscard]] bool draining() const { return draining_.load(std::memory_order_relaxed); }

 private:
  Result<void> watch_signals();
  void on_signal(int number, net::SignalSet& signals);
  void on_end_signal(int number, net::SignalSet& signals);
  [[nodiscard]] std::string what_follows_an_end_signal() const;
  [[noreturn]] void end_by_force(std::string_view what, std::string_view why, bool with_dump);
  void begin_drain();  // called once, by the thread that sets draining_
  void limit_the_start();
  void reload_beside();
  void reload_once();
  void reload();
  bool reload_settings(bool certificates);
  void warn_of_certificates() const;
  void dump_beside();

  std::expected<void, std::string> start(MakeHandlers make_handlers);
  Result<void> open(Handlers handlers, Listeners listeners);
  Result<void> open_admin(http::Handler handler, net::Listener listener);
  // `listeners`: the number of listeners of the service.
  Result<void> add_server(http::Handler handler, net::Listener listener, std::size_t listeners);
  void complain(std::string_view what) const;
  void announce();
  int serve();
  bool drain();

  const std::string name_;
  config::Config config_;  // constant, except log.level, which only reload() changes
  const bool log_is_stderr_;
  const Reread reread_;
  std::shared_ptr<net::TlsServer> tls_;  // null: no TLS; set once, before started_
  std::vector<std::unique_ptr<http::Server>> servers_;
  const std::shared_ptr<Metrics> metrics_;
  std::unique_ptr<http::Server> admin_;  // null: no admin listener is configured
  Latch ended_{1};                       // zero: draining
  std::string ended_by_;  // the name of the signal, if it was one; written before ended_ is zero
  std::atomic<bool> draining_{false};
  std::atomic<bool> started_{false};  // the start is over, whether it succeeded or failed
  std::atomic<bool> serving_{false};  // the service manager has been, or is being, told READY=1
  std::atomic<bool> dumping_{false};
  std::atomic<int> reloads_wanted_{0};  // not zero: a goroutine is reloading
  int end_signals_ = 0;                 // of the goroutine that waits for signals
};

}  // namespace tuza
