#include <tuza/sched/log.h>

#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>

#include <new>

namespace tuza {
namespace {

constexpr std::int64_t kIntervalNs = 1'000'000'000;

// Bytes of the control character at the beginning of `text`: of C0, DEL, or of C1 in UTF-8; 0: there is none.
std::size_t control_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7f) return 1;
  const bool c1 = first == 0xc2 && text.size() > 1 && static_cast<unsigned char>(text[1]) <= 0x9f;
  return c1 ? 2 : 0;
}

// A line stays one line, and no terminal obeys what a peer called itself.
void to_stderr(LogLevel, std::string_view line) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  rt::Line out;
  while (!line.empty()) {
    const std::size_t control = control_bytes(line);
    const std::size_t bytes = control == 0 ? 1 : control;
    for (const char c : line.substr(0, bytes)) {
      if (control == 0) {
        out << c;
      } else {
        const auto byte = static_cast<unsigned char>(c);
        out << "\\x" << kDigits[byte >> 4] << kDigits[byte & 15];
      }
    }
    line.remove_prefix(bytes);
  }
  out << "\n";
}

std::atomic<LogSink> g_sink{&to_stderr};

}  // namespace

void set_log_sink(LogSink sink) { g_sink.store(sink != nullptr ? sink : &to_stderr); }

void log_line(LogLevel level, std::string_view line) {
  try {
    g_sink.load()(level, line);
  } catch (const std::bad_alloc&) {  // the line may be the one that says so
    to_stderr(level, line);
  }
}

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
