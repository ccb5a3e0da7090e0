#include <tuza/http/client/set_cookie.h>

#include <tuza/http/cookie_jar.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace tuza::http {
namespace {

using std::chrono::seconds;

constexpr seconds kLifetimeMax = std::chrono::days(400);

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the text in front of the next `;` off.
std::string_view take_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find(';'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// Everything but digits in front of a number, or behind it, makes it meaningless.
std::optional<seconds> parse_max_age(std::string_view text) {
  if (text.empty() || !(is_digit(text[0]) || text[0] == '-')) return {};
  if (!std::ranges::all_of(text.substr(1), is_digit)) return {};
  if (text[0] == '-') return text.size() > 1 ? std::optional(seconds(0)) : std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::min(seconds(value), kLifetimeMax) : kLifetimeMax;
}

void read_attribute(std::string_view name, std::string_view value, std::chrono::sys_seconds now,
                    SetCookie& cookie, std::optional<seconds>& max_age) {
  if (value.size() > CookieJar::kAttributeBytesMax) return;
  if (equals_ignoring_case(name, "Max-Age")) {
    if (const auto age = parse_max_age(value)) max_age = age;
  } else if (equals_ignoring_case(name, "Expires")) {
    if (const auto date = parse_cookie_date(value)) cookie.lifetime = std::min(*date - now, kLifetimeMax);
  } else if (equals_ignoring_case(name, "Domain")) {
    cookie.domain = value.starts_with('.') ? value.substr(1) : value;
  } else if (equals_ignoring_case(name, "Path")) {
    cookie.has_path = value.starts_with('/');
    cookie.path = cookie.has_path ? value : std::string_view();
  } else if (equals_ignoring_case(name, "Secure")) {
    cookie.secure = true;
  }
}

// -- Dates.

bool is_date_delimiter(char c) {
  return c == '\t' || (c >= ' ' && c <= '/') || (c >= ';' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// A number of at most `digits_max` digits at the start, which it takes off; -1 if there is none.
int take_number(std::string_view& text, std::size_t digits_max) {
  std::size_t digits = 0;
  int value = 0;
  for (; digits < text.size() && is_digit(text[digits]); ++digits) {
    if (digits == digits_max) return -1;
    value = value * 10 + (text[digits] - '0');
  }
  text.remove_prefix(digits);
  return digits == 0 ? -1 : value;
}

// Nothing, or what begins with no digit.
bool ends_number(std::string_view rest) { return rest.empty() || !is_digit(rest[0]); }

struct DateParts {
  int hour = -1, minute = -1, second = -1, day = -1, month = -1, year = -1;

  bool take_time(std::string_view token) {
    if (hour >= 0) return false;
    std::array<int, 3> parts{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i > 0 && !token.starts_with(':')) return false;
      if (i > 0) token.remove_prefix(1);
      parts[i] = take_number(token, 2);
      if (parts[i] < 0) return false;
    }
    if (!ends_number(token)) return false;
    hour = parts[0], minute = parts[1], second = parts[2];
    return true;
  }
  static bool take(int& field, std::string_view token, std::size_t digits_min, std::size_t digits_max) {
    if (field >= 0) return false;
    const std::size_t size = token.size();
    const int value = take_number(token, digits_max);
    if (value < 0 || size - token.size() < digits_min || !ends_number(token)) return false;
    field = value;
    return true;
  }
  bool take_month(std::string_view token) {
    constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                       "jul", "aug", "sep", "oct", "nov", "dec"};
    if (month >= 0 || token.size() < 3) return false;
    const auto found = std::ranges::find_if(
        kMonths, [&](std::string_view one) { return equals_ignoring_case(token.substr(0, 3), one); });
    if (found == kMonths.end()) return false;
    month = static_cast<int>(found - kMonths.begin()) + 1;
    return true;
  }
};

}  // namespace

std::optional<std::chrono::sys_seconds> parse_cookie_date(std::string_view text) {
  DateParts date;
  while (!text.empty()) {
    const auto end = std::ranges::find_if(text, is_date_delimiter);
    const std::string_view token(text.begin(), end);
    text.remove_prefix(std::min(token.size() + 1, text.size()));
    if (date.take_time(token) || DateParts::take(date.day, token, 1, 2) || date.take_month(token)) continue;
    DateParts::take(date.year, token, 2, 4);
  }
  if (date.year >= 70 && date.year <= 99) date.year += 1900;
  if (date.year >= 0 && date.year <= 69) date.year += 2000;
  if (date.hour < 0 || date.hour > 23 || date.minute > 59 || date.second > 59 || date.year < 1601) return {};
  if (date.day < 1 || date.month < 1) return {};
  const std::chrono::year_month_day day(std::chrono::year(date.year),
                                        std::chrono::month(static_cast<unsigned>(date.month)),
                                        std::chrono::day(static_cast<unsigned>(date.day)));
  if (!day.ok()) return {};
  return std::chrono::sys_days(day) + std::chrono::hours(date.hour) + std::chrono::minutes(date.minute) +
         seconds(date.second);
}

std::optional<SetCookie> parse_set_cookie(std::string_view text, std::chrono::sys_seconds now) {
  if (has_control_char(text)) return {};
  const std::string_view pair = take_part(text);
  const std::size_t equals = pair.find('=');
  if (equals == std::string_view::npos) return {};
  SetCookie cookie{.name = trim(pair.substr(0, equals)), .value = trim(pair.substr(equals + 1))};
  if (cookie.name.empty() || cookie.name.size() + cookie.value.size() > CookieJar::kCookieBytesMax) return {};
  std::optional<seconds> max_age;
  while (!text.empty()) {
    const std::string_view part = take_part(text);
    const std::size_t at = std::min(part.find('='), part.size());
    read_attribute(trim(part.substr(0, at)), trim(part.substr(std::min(at + 1, part.size()))), now, cookie,
                   max_age);
  }
  if (max_age) cookie.lifetime = max_age;
  return cookie;
}

}  // namespace tuza::http
