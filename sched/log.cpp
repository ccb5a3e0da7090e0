#include <tuza/sched/log.h>

#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>

namespace tuza {
namespace {

constexpr std::int64_t kIntervalNs = 1'000'000'000;

void to_stderr(LogLevel, std::string_view line) { rt::Line() << line << "\n"; }

std::atomic<LogSink> g_sink{&to_stderr};

}  // namespace

void set_log_sink(LogSink sink) { g_sink.store(sink != nullptr ? sink : &to_stderr); }

void log_line(LogLevel level, std::string_view line) { g_sink.load()(level, line); }

void LogLimiter::log(LogLevel level, std::string_view line) {
  const std::int64_t now = rt::now_ns();
  std::int64_t next = next_ns_.load(std::memory_order_relaxed);
  // The caller that advances the time logs, and so do the next few; the others of that second are counted.
  // (Relaxed, and two words: at a change of second a few lines more or less may pass.)
  if (now >= next && next_ns_.compare_exchange_strong(next, now + kIntervalNs)) {
    lines_.store(1, std::memory_order_relaxed);
  } else if (burst_ <= 1 || lines_.fetch_add(1, std::memory_order_relaxed) >= burst_) {
    held_back_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t held_back = held_back_.exchange(0, std::memory_order_relaxed);
  if (held_back == 0) {
    log_line(level, line);
    return;
  }
  rt::Line text(rt::Line::kNowhere);
  text << line << " (and " << held_back << " more)";
  log_line(level, text.text());
}

}  // namespace tuza
