#include <tuza/sched/rt/slice/slice_options.h>

#include <tuza/sched/rt/base/variable_problem.h>
#include <tuza/sched/rt/slice/thread_signal.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace tuza::rt {
namespace {

// The number in the variable `name`, or `otherwise` if it is unset or invalid. 0 is always accepted if
// `zero_is_off`.
std::int64_t number(const char* name, std::int64_t low, std::int64_t high, bool zero_is_off,
                    std::int64_t otherwise) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return otherwise;
  const std::string_view text(value);
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  if (is_number && ((n >= low && n <= high) || (n == 0 && zero_is_off))) return n;
  Line problem(Line::kNowhere);
  problem << name << ": expected a number from " << low << " to " << high
          << (zero_is_off ? ", or 0 for off" : "") << ", not '" << text << "'";
  report_variable(problem);
  return otherwise;
}

// Signals that the program may dedicate to this purpose, and that mean nothing else. glibc reserves the first
// real-time signals.
bool may_be_used(int signal) {
  if (signal >= real_time_signals().first) return true;
  for (const int usual : {0, SIGURG, SIGUSR1, SIGUSR2, SIGIO, SIGVTALRM, SIGWINCH}) {
    if (signal == usual) return true;
  }
  return false;
}

}  // namespace

SliceOptions SliceOptions::from_environment() {
  SliceOptions options;
  options.slice_ns = number("TUZA_SLICE_MS", 1, 10'000, false, options.slice_ns / 1'000'000) * 1'000'000;
  options.early_ns = number("TUZA_EARLY_HANDOFF_US", 100, 10'000'000, true, options.early_ns / 1'000) * 1'000;
  options.lane_extra =
      static_cast<std::uint32_t>(number("TUZA_LANE_EXTRA", 1, 1000, true, options.lane_extra));
  options.signal =
      static_cast<int>(number("TUZA_PREEMPT_SIGNAL", 1, real_time_signals().last, true, options.signal));
  if (!may_be_used(options.signal)) {
    Line problem(Line::kNowhere);
    problem << "TUZA_PREEMPT_SIGNAL: signal " << options.signal
            << " cannot be used (SIGURG, SIGUSR1, SIGUSR2,"
            << " SIGIO, SIGVTALRM, SIGWINCH and real-time signals can)";
    report_variable(problem);
    options.signal = SIGURG;
  }
  return options;
}

}  // namespace tuza::rt
