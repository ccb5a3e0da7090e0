#include <tuza/http/middleware/detail/log_fields.h>

#include <tuza/http/middleware/detail/text.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <ctime>

namespace tuza::http::detail {
namespace {

std::tm utc(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm fields{};
  gmtime_r(&seconds, &fields);
  return fields;
}

}  // namespace

void append_decimal(std::string& line, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  (void)error;
  line.append(digits.data(), end);
}

// Not strftime(): the months are English in every locale.
void append_apache_time(std::string& line, std::chrono::system_clock::time_point time) {
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm at = utc(time);
  std::array<char, 64> text;
  const int n = std::snprintf(text.data(), text.size(), "[%02d/%s/%04d:%02d:%02d:%02d +0000]", at.tm_mday,
                              kMonths[static_cast<std::size_t>(at.tm_mon)], at.tm_year + 1900, at.tm_hour,
                              at.tm_min, at.tm_sec);
  line.append(text.data(), static_cast<std::size_t>(n));
}

void append_json_time(std::string& line, std::chrono::system_clock::time_point time) {
  const std::tm at = utc(time);
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  std::array<char, 64> text;
  const int n =
      std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", at.tm_year + 1900,
                    at.tm_mon + 1, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec, static_cast<int>(ms));
  line.append(text.data(), static_cast<std::size_t>(n));
}

void append_word(std::string& line, std::string_view text) {
  if (text.empty()) line += '-';
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    append_log_escaped(line, text.substr(0, space));
    if (space == std::string_view::npos) return;
    line += "\\x20";
    text.remove_prefix(space + 1);
  }
}

void append_quoted(std::string& line, std::string_view text) {
  line += " \"";
  append_log_escaped(line, text.empty() ? "-" : text);
  line += '"';
}

std::string_view without_port(std::string_view remote) {
  if (remote.starts_with('[')) return remote.substr(1, remote.find(']') - 1);
  return remote.substr(0, remote.rfind(':'));
}

void append_json_text(std::string& line, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  line.append(",\"").append(name).append("\":\"").append(json_escaped(text)).append("\"");
}

void append_json_number(std::string& line, std::string_view name, std::uint64_t number) {
  line.append(",\"").append(name).append("\":");
  append_decimal(line, number);
}

}  // namespace tuza::http::detail
