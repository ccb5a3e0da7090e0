#include <tuza/sched/rt/report/debug_options.h>

#include <tuza/sched/rt/base/variable_problem.h>

#include <charconv>
#include <cstdlib>

namespace tuza::rt {
namespace {

bool parse_number(std::string_view text, std::int64_t max, std::int64_t& out) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > max) return false;
  out = value;
  return true;
}

bool parse_flag(std::string_view text, bool& out) {
  std::int64_t number = 0;
  if (!parse_number(text, 1, number)) return false;
  out = number == 1;
  return true;
}

// "20ms", at most a minute.
bool parse_duration(std::string_view text, std::int64_t& out_ns) {
  std::int64_t ms = 0;
  if (!text.ends_with("ms") || !parse_number(text.substr(0, text.size() - 2), 60'000, ms)) return false;
  out_ns = ms * 1'000'000;
  return true;
}

bool apply(DebugOptions& options, std::string_view key, std::string_view value) {
  if (key == "schedtrace") return parse_number(value, 3'600'000, options.schedtrace_ms);
  if (key == "scheddetail") return parse_flag(value, options.scheddetail);
  if (key == "asyncpreemptoff") return parse_flag(value, options.async_preempt_off);
  if (key == "membarrieroff") return parse_flag(value, options.membarrier_off);
  if (key == "heldmutex") return parse_flag(value.empty() ? "1" : value, options.held_mutexes);
  if (key == "allframes") return parse_flag(value.empty() ? "1" : value, options.all_frames);
  if (key == "stalls") return parse_duration(value, options.stalls_ns);
  return false;
}

}  // namespace

DebugOptions DebugOptions::parse(std::string_view text) {
  DebugOptions options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(item.size() + (item.size() < text.size() ? 1 : 0));
    const std::size_t equals = item.find('=');
    const bool has_value = equals != std::string_view::npos;
    if (!apply(options, item.substr(0, equals), has_value ? item.substr(equals + 1) : "")) {
      Line problem(Line::kNowhere);
      problem
          << "TUZA_DEBUG: cannot use '" << item
          << "'; known are schedtrace=<ms, 0 to 3600000>, scheddetail=<0 or 1>, asyncpreemptoff=<0 or 1>, "
             "membarrieroff=<0 or 1>, heldmutex, allframes and stalls=<0 to 60000>ms";
      report_variable(problem);
    }
  }
  return options;
}

DebugOptions DebugOptions::from_environment() {
  const char* text = std::getenv("TUZA_DEBUG");
  return text == nullptr ? DebugOptions{} : parse(text);
}

}  // namespace tuza::rt
