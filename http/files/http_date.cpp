#include <tuza/http/files/http_date.h>

#include <array>
#include <cstdio>

namespace tuza::http {
namespace {

using namespace std::chrono;

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

// Parses a date from its beginning; each function returns false if the text is not as expected.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool take(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  // Exactly `digits` digits; in asctime's day the first may be a space.
  [[nodiscard]] bool number(int digits, int& value, bool space_first = false) {
    if (rest_.size() < static_cast<std::size_t>(digits)) return false;
    value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = rest_[static_cast<std::size_t>(i)];
      if (i == 0 && space_first && c == ' ') continue;
      if (c < '0' || c > '9') return false;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(static_cast<std::size_t>(digits));
    return true;
  }
  [[nodiscard]] bool month(int& value) {
    for (int i = 0; i < 12; ++i) {
      if (take(kMonths.substr(static_cast<std::size_t>(i) * 3, 3))) {
        value = i + 1;
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool day_name(bool whole) {
    for (const std::string_view name : kDays) {
      if (take(whole ? name : name.substr(0, 3))) return true;
    }
    return false;
  }
  [[nodiscard]] bool clock(int& h, int& m, int& s) {
    return number(2, h) && take(":") && number(2, m) && take(":") && number(2, s);
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

struct Fields {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

bool scan_fixdate(std::string_view text, Fields& f) {
  Scanner in(text);
  return in.day_name(false) && in.take(", ") && in.number(2, f.day) && in.take(" ") && in.month(f.month) &&
         in.take(" ") && in.number(4, f.year) && in.take(" ") && in.clock(f.hour, f.minute, f.second) &&
         in.take(" GMT") && in.at_end();
}

bool scan_rfc850(std::string_view text, Fields& f) {
  Scanner in(text);
  return in.day_name(true) && in.take(", ") && in.number(2, f.day) && in.take("-") && in.month(f.month) &&
         in.take("-") && in.number(2, f.year) && in.take(" ") && in.clock(f.hour, f.minute, f.second) &&
         in.take(" GMT") && in.at_end();
}

bool scan_asctime(std::string_view text, Fields& f) {
  Scanner in(text);
  return in.day_name(false) && in.take(" ") && in.month(f.month) && in.take(" ") &&
         in.number(2, f.day, true) && in.take(" ") && in.clock(f.hour, f.minute, f.second) && in.take(" ") &&
         in.number(4, f.year) && in.at_end();
}

// RFC 9110 5.6.7: a date that appears to be more than 50 years in the future is in the past century.
int whole_year(int two_digits, sys_seconds now) {
  const int this_year = static_cast<int>(year_month_day(floor<days>(now)).year());
  const int year = this_year - this_year % 100 + two_digits;
  return year > this_year + 50 ? year - 100 : year;
}

}  // namespace

std::string format_http_date(sys_seconds time) {
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  const std::string_view weekday = kDays[year_month_weekday(day).weekday().c_encoding()];
  const std::string_view month = kMonths.substr(std::size_t{static_cast<unsigned>(date.month()) - 1} * 3, 3);
  std::array<char, 40> text;
  const int n =
      std::snprintf(text.data(), text.size(), "%.3s, %02u %.3s %04d %02d:%02d:%02d GMT", weekday.data(),
                    static_cast<unsigned>(date.day()), month.data(), static_cast<int>(date.year()),
                    static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                    static_cast<int>(clock.seconds().count()));
  return {text.data(), static_cast<std::size_t>(n)};
}

std::optional<sys_seconds> parse_http_date(std::string_view text, sys_seconds now) {
  Fields f;
  if (scan_rfc850(text, f)) {
    f.year = whole_year(f.year, now);
  } else if (!scan_fixdate(text, f = {}) && !scan_asctime(text, f = {})) {
    return std::nullopt;
  }
  const year_month_day date(year(f.year), month(static_cast<unsigned>(f.month)),
                            day(static_cast<unsigned>(f.day)));
  if (!date.ok() || f.hour > 23 || f.minute > 59 || f.second > 60) return std::nullopt;  // 60: a leap second
  return sys_days(date) + hours(f.hour) + minutes(f.minute) + seconds(f.second);
}

}  // namespace tuza::http
