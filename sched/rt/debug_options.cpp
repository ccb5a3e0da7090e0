#include <tuza/sched/rt/debug_options.h>

#include <tuza/sched/rt/print.h>

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

bool apply(DebugOptions& options, std::string_view key, std::string_view value) {
  std::int64_t number = 0;
  if (key == "schedtrace") return parse_number(value, 3'600'000, options.schedtrace_ms);
  if (key == "scheddetail" && parse_number(value, 1, number)) {
    options.scheddetail = number == 1;
    return true;
  }
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
      Line() << "tuza: TUZA_DEBUG: cannot use '" << item
             << "'; known are schedtrace=<ms, 0 to 3600000> and scheddetail=<0 or 1>\n";
    }
  }
  return options;
}

DebugOptions DebugOptions::from_environment() {
  const char* text = std::getenv("TUZA_DEBUG");
  return text == nullptr ? DebugOptions{} : parse(text);
}

}  // namespace tuza::rt
