// What signals do to a service.
#include <tuza/framework/app/notify.h>
#include <tuza/framework/app/service.h>
#include <tuza/framework/detail/keep_for_ever.h>
#include <tuza/framework/log.h>
#include <tuza/framework/log/output.h>
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine_dump.h>
#include <tuza/sched/log.h>
#include <tuza/sched/time/sleep.h>

#include <signal.h>
#include <time.h>

#include <cstdlib>

namespace tuza {
namespace {

// How long the end at once waits for the log, if nobody reads that.
constexpr std::chrono::milliseconds kLastWords{1000};

// Parsers call themselves as deep as what they read is nested (config/toml_file.cpp limits that).
constexpr std::size_t kReloadStack = std::size_t{8} << 20;

// A standard error that takes nothing for so many tenths of a second gets no more of a dump.
constexpr int kDumpTries = 20;

std::string reloading_message() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return "RELOADING=1\nMONOTONIC_USEC=" +
         std::to_string(std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000);
}

}  // namespace

Result<void> Service::watch_signals() {
  Result<net::SignalSet> opened = net::SignalSet::open({SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  if (!opened) return std::unexpected(opened.error());
  // Never closed: a signal that comes when everything has been done must not become the way it ends.
  auto& signals = keep_for_ever<net::SignalSet>(std::move(*opened));
  go({.name = "signals"}, [this, &signals] {
    while (const Result<int> number = signals.wait()) on_signal(*number);
  });
  return {};
}

// Does not wait for anything but the next signal: an end signal must be heard, whatever else is going on.
void Service::on_signal(int number) {
  switch (number) {
    case SIGTERM: return on_end_signal("SIGTERM");
    case SIGINT: return on_end_signal("SIGINT");
    case SIGHUP: return reload_beside();
    case SIGQUIT: return dump_beside();
    default: return;
  }
}

void Service::on_end_signal(std::string_view name) {
  if (end_signals_.fetch_add(1) > 0) end_by_force(std::string(name) + " again: ending at once");
  log_line(LogLevel::kInfo, name_ + ": " + std::string(name) +
                                ": no new connections; requests in flight finish (again: end at once)");
  begin_drain();
  if (!started_.load()) limit_the_start();
}

void Service::begin_drain() {
  if (draining_.exchange(true)) return;
  notify_service_manager("STOPPING=1");
  ended_.count_down();
}

// The program is setting itself up, and nobody knows how long that takes.
void Service::limit_the_start() {
  go({.name = "start limit"}, [this] {
    sleep_for(std::chrono::milliseconds(config_.number("shutdown.timeout")));
    if (!started_.load()) end_by_force("it has not finished to set itself up");
  });
}

void Service::end_by_force(std::string_view why) {
  log_line(LogLevel::kError, name_ + ": " + std::string(why));
  blocking(CallLength::kLong, [] { drain_log(kLastWords); });
  std::_Exit(1);
}

// Files may be on a disk that does not answer. Signals that come meanwhile are one more time together.
void Service::reload_beside() {
  if (reloads_wanted_.fetch_add(1) > 0) return;
  go({.name = "SIGHUP", .stack_bytes = kReloadStack}, [this] {
    int wanted = 0;
    do {
      wanted = reloads_wanted_.load();
      // The manager is told while it believes that the service is running, neither before nor after.
      const bool tell = serving_.load() && !draining();
      if (tell) notify_service_manager(reloading_message());
      blocking(CallLength::kLong, [this] { reload(); });
      if (tell && !draining()) notify_service_manager("READY=1");
    } while (reloads_wanted_.fetch_sub(wanted) > wanted);
  });
}

// Everything that can be read again; what is wrong stays as it was.
void Service::reload() {
  const std::string level = reload_settings();
  bool certificates = false;
  if (started_.load() && tls_ != nullptr) {
    const Result<void> read = tls_->reload();
    if (!read) {
      log_line(LogLevel::kError,
               name_ + ": SIGHUP: the certificates stay as they were: " + read.error().message());
    }
    certificates = read.has_value();
  }
  if (const Result<void> reopened = reopen_log(); !reopened) {
    log_line(LogLevel::kError, name_ + ": SIGHUP: " + reopened.error().message());
  }
  log_line(LogLevel::kInfo,
           name_ + ": SIGHUP: log.level is " + level + (certificates ? ", certificates read again" : ""));
}

// Returns the level of the log.
std::string Service::reload_settings() {
  const auto fresh = reread_();
  if (!fresh) {
    const std::size_t others = fresh.error().size() - 1;
    log_line(LogLevel::kError, name_ + ": SIGHUP: the settings stay as they were: " + fresh.error().front() +
                                   (others == 0 ? "" : " (and " + std::to_string(others) + " more)"));
    return config_.text("log.level");
  }
  std::string unused;
  for (const config::Key& key : config_.schema().keys()) {
    if (fresh->value(key.name) == config_.value(key.name)) continue;
    if (!key.reload) unused.append(unused.empty() ? "" : ", ").append(key.name);
  }
  set_log_level(fresh->text("log.level"));
  config_.set("log.level", fresh->value("log.level"), fresh->origin("log.level"));
  if (!unused.empty()) {
    log_line(LogLevel::kWarning, name_ + ": SIGHUP: not changed before the next start: " + unused);
  }
  return config_.text("log.level");
}

void Service::dump_beside() {
  if (dumping_.exchange(true)) return;
  go({.name = "SIGQUIT"}, [this] {
    int tries = kDumpTries;
    dump_goroutines([&](std::string_view text) {
      return blocking(CallLength::kLong, [&] { return logging::write_patiently(2, text, tries); });
    });
    dumping_.store(false);
  });
}

}  // namespace tuza
