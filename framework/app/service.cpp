#include <tuza/framework/app/service.h>

#include <tuza/framework/access_log.h>
#include <tuza/framework/admin.h>
#include <tuza/framework/app/listeners.h>
#include <tuza/framework/app/notify.h>
#include <tuza/framework/app/options.h>
#include <tuza/framework/app/tls_settings.h>
#include <tuza/framework/config/units.h>
#include <tuza/framework/log.h>
#include <tuza/framework/log/current.h>
#include <tuza/framework/log/output.h>
#include <tuza/netpoll/serve.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/log.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tuza {
namespace {

// Few connections, so that they cannot cost much; short idle times, so that the next health check finds a free one.
// One address cannot have all of them. A client that reads a dump too slowly is cut off.
constexpr std::size_t kAdminConnectionsMax = 128, kAdminConnectionsPerAddressMax = 96;
constexpr std::chrono::milliseconds kAdminWriteTimeout{5000};
constexpr std::uint32_t kAdminResponseRateMin = 16 << 10;
constexpr std::chrono::milliseconds kAdminIdleTimeout{5000};
constexpr std::chrono::milliseconds kAdminShutdownTimeout{500};

}  // namespace

Service::Service(std::string name, config::Config config, Reread reread, std::shared_ptr<Metrics> metrics)
    : name_(std::move(name)),
      config_(std::move(config)),
      log_is_stderr_(config_.text("log.file") == "stderr"),
      reread_(std::move(reread)),
      metrics_(std::move(metrics)) {}

// Reports in one line why the service does not start. The line reaches standard error even if the log goes elsewhere.
void Service::complain(std::string_view what) const {
  const std::string line = name_ + ": " + std::string(what);
  log_line(LogLevel::kError, line);
  int tries = 5;
  if (log_is_stderr_ && logging::wants(LogLevel::kError)) return;
  logging::write_patiently(2, line + "\n", tries);
}

int Service::run(MakeHandlers make_handlers) {
  set_max_threads(static_cast<int>(config_.number("runtime.max_threads")));
  const std::expected<void, std::string> ready = start(std::move(make_handlers));
  started_.store(true);
  int status = 0;
  if (!ready) {
    complain(ready.error());
    status = 1;
  } else if (!draining()) {
    announce();
    status = serve();
  }
  admin_.reset();
  servers_.clear();
  return status;
}

std::expected<void, std::string> Service::start(MakeHandlers make_handlers) {
  const auto fail = [](const Error& error) { return std::unexpected(error.message()); };
  if (const Result<void> watching = watch_signals(); !watching) return fail(watching.error());
  std::expected<Handlers, std::string> handlers = make_handlers();
  if (!handlers) return std::unexpected(handlers.error());
  if (draining()) return {};
  std::expected<Listeners, std::string> listeners = open_listeners(config_);
  if (!listeners) return std::unexpected(listeners.error());
  std::expected<std::shared_ptr<net::TlsServer>, std::string> tls = load_tls(config_);
  if (!tls) return std::unexpected(tls.error());
  tls_ = std::move(*tls);
  warn_of_certificates();
  if (const Result<void> opened = open(std::move(*handlers), std::move(*listeners)); !opened) {
    return fail(opened.error());
  }
  return {};
}

Result<void> Service::open(Handlers handlers, Listeners listeners) {
  http::Handler handler = std::move(handlers.service);
  const bool log_requests = config_.boolean("http.access_log");
  if (listeners.admin) {
    if (Result<void> opened = open_admin(std::move(handlers.admin), std::move(*listeners.admin)); !opened)
      return opened;
  }
  if (admin_ != nullptr && config_.boolean("metrics.enabled")) {
    handler = http::with(std::move(handler), metrics_->middleware(log_requests));
  } else if (log_requests) {
    handler = http::with(std::move(handler), access_log());
  }
  const std::size_t n = listeners.http.size();
  if (n == 1) return add_server(std::move(handler), std::move(listeners.http.front()), n);
  const auto shared = std::make_shared<const http::Handler>(std::move(handler));
  for (net::Listener& listener : listeners.http) {
    const auto call_it = [shared](http::Request& req, http::ResponseWriter& res) { (*shared)(req, res); };
    if (Result<void> added = add_server(call_it, std::move(listener), n); !added) return added;
  }
  return {};
}

Result<void> Service::add_server(http::Handler handler, net::Listener listener, std::size_t listeners) {
  if (tls_ != nullptr) listener.use_tls(tls_);
  http::ServerOptions options = server_options(config_);
  if (config_.boolean("http.access_log")) options.on_refused = log_refused;
  // The connections that the descriptor limit allows are shared by all listeners.
  if (options.max_connections == 0) {
    options.max_connections = std::max<std::size_t>(net::connections_allowed() / listeners, 1);
  }
  auto server = std::make_unique<http::Server>(std::move(handler), std::move(options));
  if (Result<void> listening = server->listen(std::move(listener)); !listening) return listening;
  if (admin_ != nullptr) metrics_->add_server([one = server.get()] { return one->stats(); });
  servers_.push_back(std::move(server));
  return {};
}

Result<void> Service::open_admin(http::Handler handler, net::Listener listener) {
  admin_ = std::make_unique<http::Server>(
      std::move(handler), http::ServerOptions{.header_timeout = kAdminIdleTimeout,
                                              .idle_timeout = kAdminIdleTimeout,
                                              .write_timeout = kAdminWriteTimeout,
                                              .response_rate_min_bytes_per_second = kAdminResponseRateMin,
                                              .max_connections = kAdminConnectionsMax,
                                              .connections_per_address_max = kAdminConnectionsPerAddressMax,
                                              .shutdown_timeout = kAdminShutdownTimeout});
  return admin_->listen(std::move(listener));
}

void Service::announce() {
  if (admin_ != nullptr) log_line(LogLevel::kInfo, name_ + ": health and metrics on " + admin_->address());
  for (const auto& server : servers_) {
    log_line(LogLevel::kInfo,
             name_ + (tls_ != nullptr ? ": serving HTTPS on " : ": serving HTTP on ") + server->address());
  }
  serving_.store(true);
  notify_service_manager("READY=1");
}

int Service::serve() {
  WaitGroup serving, administering;
  if (admin_ != nullptr) {
    administering.go([this] {
      const Result<void> served = admin_->serve();
      if (!served) log_line(LogLevel::kError, name_ + ": admin.listen: " + served.error().message());
    });
  }
  std::atomic<bool> failed{false};
  for (const auto& server : servers_) {
    serving.go([&, server = server.get()] {
      const Result<void> served = server->serve();
      if (served) return;
      log_line(LogLevel::kError, name_ + ": " + served.error().message());
      failed.store(true);
      if (!draining_.exchange(true)) begin_drain();
    });
  }
  ended_.wait();
  const bool clean = drain();
  serving.wait();
  // The admin server ends last, so that an operator can find out why the shutdown is slow.
  if (admin_ != nullptr) admin_->shutdown(ended_by_);
  administering.wait();
  std::size_t left = admin_ == nullptr ? 0 : admin_->connections();
  for (const auto& server : servers_) left += server->connections();
  // The handlers of the remaining connections use objects that main() is about to destroy.
  if (left > 0) {
    const std::string what = std::to_string(left) + (left == 1 ? " connection" : " connections");
    end_by_force(what, " did not end even after being cut off", true);
  }
  if (!clean) log_line(LogLevel::kWarning, name_ + ": unfinished requests were cut off");
  log_line(LogLevel::kInfo, name_ + ": ended");
  return clean && !failed.load() ? 0 : 1;
}

// Shuts all servers down. True: nothing had to be cut off.
bool Service::drain() {
  if (const auto delay = std::chrono::milliseconds(config_.number("shutdown.delay")); delay.count() > 0) {
    sleep_for(delay);
  }
  std::size_t open = 0;
  for (const auto& server : servers_) open += server->connections();
  log_line(LogLevel::kInfo,
           name_ + ": no more connections are accepted; " + std::to_string(open) + " open, requests have " +
               config::duration_text(config_.number("shutdown.timeout")) + " to finish (shutdown.timeout)");
  std::atomic<bool> clean{true};
  WaitGroup shutting_down;
  for (const auto& server : servers_) {
    shutting_down.go([&, server = server.get()] {
      if (!server->shutdown(ended_by_)) clean.store(false);
    });
  }
  shutting_down.wait();
  return clean.load();
}

}  // namespace tuza
