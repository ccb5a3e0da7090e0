// A service from its first to its last moment, on goroutines:
//
//     starting    signals are watched; the program sets itself up; listeners are opened
//     serving     the manager knows that it is ready
//     draining    SIGTERM or SIGINT has come, or a listener has failed: /readyz says 503, and after
//                 shutdown.delay nothing is accepted any more; requests in flight finish, and what is left
//                 after shutdown.timeout is cut off
//
// A second SIGTERM or SIGINT ends the process at once, whatever it is doing. One that comes while it is
// starting is heeded when the program has set itself up, or after shutdown.timeout.
//
// Lives until the process ends: goroutines that are left behind may still look at it.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/http/server.h>
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

namespace net {
class TlsServer;
}

class Service {
 public:
  using Reread = std::function<std::expected<config::Config, config::Problems>()>;
  // An error is the text that is printed.
  using MakeHandler = std::move_only_function<std::expected<http::Handler, std::string>()>;

  // What `reread` needs must live until the process ends.
  Service(std::string name, config::Config config, Reread reread);

  // Returns the exit status. Parks.
  int run(MakeHandler make_handler);
  [[nodiscard]] bool draining() const { return draining_.load(std::memory_order_relaxed); }

 private:
  Result<void> watch_signals();
  void on_signal(int number);
  void on_end_signal(std::string_view name);
  void end_by_force(std::string_view why);
  void begin_drain();
  void limit_the_start();
  void reload_beside();
  void reload();
  std::string reload_settings();
  void dump_beside();

  std::expected<void, std::string> start(MakeHandler make_handler);
  Result<void> open(http::Handler handler);
  Result<void> open_admin(net::Listener listener);
  // `listeners`: how many there are.
  Result<void> add_server(http::Handler handler, net::Listener listener, std::size_t listeners);
  void complain(std::string_view what) const;
  void announce();
  int serve();
  bool drain();

  const std::string name_;
  config::Config config_;  // constant but for log.level, which is reload()'s
  const bool log_is_stderr_;
  const Reread reread_;
  std::shared_ptr<net::TlsServer> tls_;  // null: plain; set once, before started_
  std::vector<std::unique_ptr<http::Server>> servers_;
  std::shared_ptr<Metrics> metrics_;     // null: there is no admin_
  std::unique_ptr<http::Server> admin_;  // null: nobody wants it
  Latch ended_{1};                       // zero: draining
  std::atomic<bool> draining_{false};
  std::atomic<bool> started_{false};  // the start is over, well or badly
  std::atomic<bool> serving_{false};  // the manager has been, or is being, told so
  std::atomic<bool> dumping_{false};
  std::atomic<int> reloads_wanted_{0};  // not zero: a goroutine is at it
  std::atomic<int> end_signals_{0};
};

}  // namespace tuza
