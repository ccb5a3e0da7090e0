// The reactions of a service to signals: shutdown, reload, goroutine dump.
#include <tuza/framework/app/notify.h>
#include <tuza/framework/app/service.h>
#include <tuza/framework/app/tls_settings.h>
#include <tuza/framework/config/units.h>
#include <tuza/framework/log.h>
#include <tuza/framework/log/output.h>
#include <tuza/netpoll/detail/end_of_run.h>
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/detail/keep_for_ever.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine_dump.h>
#include <tuza/sched/log.h>
#include <tuza/sched/time/sleep.h>

#include <signal.h>
#include <time.h>

#include <cstdlib>
#include <new>

namespace tuza {
namespace {

// Maximum time that an immediate exit waits for the log, in case the reader of the log has stalled.
constexpr std::chrono::milliseconds kLastWords{1000};

// Parsers recurse as deep as their input is nested (config/toml_file.cpp limits the depth).
constexpr std::size_t kReloadStack = std::size_t{8} << 20;

// The dump is abandoned if standard error accepts nothing for this many tenths of a second in total.
constexpr int kDumpTries = 20;

// What a signal asks for must not depend on memory for the line that says so.
template <class MakeText>
void say(LogLevel level, const MakeText& make_text) try {
  log_line(level, make_text());
} catch (const std::bad_alloc&) {
  log_line(level, "tuza: no memory to say what follows a signal");
}

void dump_to_stderr(const DumpOptions& options) try {
  int tries = kDumpTries;
  dump_goroutines(
      [&](std::string_view text) {
        return blocking(CallLength::kLong, [&] { return logging::write_patiently(2, text, tries); });
      },
      options);
} catch (const std::bad_alloc&) {
  log_line(LogLevel::kError, "tuza: no memory for a dump of the goroutines");
}

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
  // A signal that arrives after all work is finished must not become the cause of the exit.
  net::swallow_after_the_run(*opened);
  auto& signals = keep_for_ever<net::SignalSet>(std::move(*opened));
  go({.name = "signals"}, [this, &signals] {
    while (const Result<int> number = signals.wait()) on_signal(*number, signals);
  });
  return {};
}

// Must not wait for long, so that the goroutine is ready for the next signal: an end signal must take effect whatever else is
// going on.
void Service::on_signal(int number, net::SignalSet& signals) {
  switch (number) {
    case SIGTERM:
    case SIGINT: return on_end_signal(number, signals);
    case SIGHUP: return reload_beside();
    case SIGQUIT: return dump_beside();
    default: return;
  }
}

void Service::on_end_signal(int number, net::SignalSet& signals) {
  const std::string_view name = number == SIGTERM ? "SIGTERM" : "SIGINT";
  if (end_signals_++ > 0) end_by_force(name, " again: exiting immediately", false);
  signals.merge(number);
  const bool begins = !draining_.exchange(true);  // before the line that says it
  say(LogLevel::kInfo, [&] {
    return name_ + ": " + std::string(name) + ": " + what_follows_an_end_signal() + " (again: end at once)";
  });
  if (begins) {
    ended_by_ = name;
    begin_drain();
  }
  if (!started_.load()) limit_the_start();
}

std::string Service::what_follows_an_end_signal() const {
  if (!started_.load()) return "ending as soon as the start is over";
  std::string text = admin_ == nullptr ? "draining" : "draining, /readyz answers 503";
  if (const std::int64_t delay = config_.number("shutdown.delay"); delay > 0) {
    text += "; connections are accepted for another " + config::duration_text(delay) + " (shutdown.delay)";
  }
  return text;
}

void Service::begin_drain() {
  notify_service_manager("STOPPING=1");
  ended_.count_down();
}

// Limits the remaining time of the start, because the set-up of the program may take arbitrarily long.
void Service::limit_the_start() {
  go({.name = "start limit"}, [this] {
    sleep_for(std::chrono::milliseconds(config_.number("shutdown.timeout")));
    if (!started_.load()) end_by_force("start-up", " did not finish in time", true);
  });
}

void Service::end_by_force(std::string_view what, std::string_view why, bool with_dump) {
  say(LogLevel::kError, [&] {
    return name_ + ": " + std::string(what) + std::string(why) +
           (with_dump ? "; the goroutines are on standard error" : "");
  });
  blocking(CallLength::kLong, [] { drain_log(kLastWords); });
  if (with_dump) dump_to_stderr({.group = true});
  std::_Exit(1);
}

// Reloads on a separate goroutine, because the files may be on a disk that does not respond. All signals that arrive
// during a reload cause one more reload together.
void Service::reload_beside() {
  if (reloads_wanted_.fetch_add(1) > 0) return;
  const auto reload_while_wanted = [this] {
    int wanted = 0;
    do {
      wanted = reloads_wanted_.load();
      reload_once();
    } while (reloads_wanted_.fetch_sub(wanted) > wanted);
  };
  // Not try_go(), which leaves the last memory to others: connections may have taken all that is theirs, and the log is to
  // be rotated nevertheless.
  const rt::Spawned started = rt::spawn({.name = "SIGHUP", .stack_bytes = kReloadStack}, reload_while_wanted,
                                        false, std::source_location::current());
  if (started == rt::Spawned::kYes) return;
  reloads_wanted_.store(0);
  say(LogLevel::kError,
      [this] { return name_ + ": SIGHUP: no memory to read the settings again; they stay as they were"; });
}

void Service::reload_once() try {
  // The service manager is notified only while it regards the service as running, neither before nor after.
  const bool tell = serving_.load() && !draining();
  if (tell) notify_service_manager(reloading_message());
  blocking(CallLength::kLong, [this] { reload(); });
  if (tell && !draining()) notify_service_manager("READY=1");
} catch (const std::bad_alloc&) {
  log_line(LogLevel::kError, "tuza: SIGHUP: no memory to read everything again");
}

// Rereads everything that can be reread. Anything that is invalid keeps its old state.
void Service::reload() {
  bool good = true, certificates = false;
  if (started_.load() && tls_ != nullptr) {
    const Result<void> read = tls_->reload();
    if (!read) {
      log_line(LogLevel::kError,
               name_ + ": SIGHUP: the certificates stay as they were: " + tls_problem(config_, read.error()));
    }
    good = certificates = read.has_value();
    if (certificates) warn_of_certificates();
  }
  if (const Result<void> reopened = reopen_log(); !reopened) {
    log_line(LogLevel::kError, name_ + ": SIGHUP: " + reopened.error().message());
    good = false;
  }
  good = reload_settings(certificates) && good;
  if (!good) return;  // the last line is the error, which a success below it would hide
  log_line(LogLevel::kInfo, name_ + ": SIGHUP: log.level is " + config_.text("log.level") +
                                (certificates ? ", certificates read again" : ""));
}

void Service::warn_of_certificates() const {
  for (const std::string& problem : tls_not_valid_now(config_))
    log_line(LogLevel::kWarning, name_ + ": " + problem);
}

// Rereads the settings and applies log.level. False, and a line in the log, if they are wrong.
bool Service::reload_settings(bool certificates) {
  const auto fresh = reread_();
  if (!fresh) {
    const std::size_t others = fresh.error().size() - 1;
    log_line(LogLevel::kError, name_ + ": SIGHUP: the settings stay as they were" +
                                   (certificates ? " (the certificates have been read again): " : ": ") +
                                   fresh.error().front() +
                                   (others == 0 ? "" : " (and " + std::to_string(others) + " more)"));
    return false;
  }
  std::string unused;
  for (const config::Key& key : config_.schema().keys()) {
    if (fresh->value(key.name) == config_.value(key.name)) continue;
    if (!key.reload) unused.append(unused.empty() ? "" : ", ").append(key.name);
  }
  set_log_level(fresh->text("log.level"));
  config_.set("log.level", fresh->value("log.level"), fresh->origin("log.level"));
  if (!unused.empty()) {
    log_line(LogLevel::kWarning, name_ + ": SIGHUP: takes effect at the next start: " + unused);
  }
  return true;
}

void Service::dump_beside() {
  if (dumping_.exchange(true)) return;
  go({.name = "SIGQUIT"}, [this] {
    dump_to_stderr({});
    dumping_.store(false);
  });
}

}  // namespace tuza
