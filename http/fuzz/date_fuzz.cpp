// Fuzz target: dates in HTTP's three formats.
//
//   - A text that is accepted is, but for the name of its day, what the C library prints for the result in one of the
//     formats. Formatting the result and parsing it again gives the same time.
//   - Each time is printed as the C library prints it, and is found again in all formats.
//
// The input: now (4 bytes), a time (5 bytes), text.
//
// Covers: http/files/http_date.cpp
#include <tuza/http/files/http_date.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace tuza::http {
namespace {

using fuzz::expect;
using std::chrono::sys_seconds;

constexpr const char* kFixdate = "%a, %d %b %Y %H:%M:%S GMT";
constexpr const char* kRfc850 = "%A, %d-%b-%y %H:%M:%S GMT";
constexpr const char* kAsctime = "%a %b %e %H:%M:%S %Y";
constexpr const char* kAsctimeZero = "%a %b %d %H:%M:%S %Y";
constexpr std::int64_t kYear0 = -62'167'219'200, kYear10000 = 253'402'300'800;

std::tm fields_of(sys_seconds time) {
  const std::time_t seconds = time.time_since_epoch().count();
  std::tm fields{};
  gmtime_r(&seconds, &fields);
  return fields;
}

int year_of(sys_seconds time) { return fields_of(time).tm_year + 1900; }

std::string print(sys_seconds time, const char* format, bool leap_second = false) {
  std::tm fields = fields_of(time);
  if (leap_second) fields.tm_sec = 60;
  // strftime does not fill up years below 1000.
  std::array<char, 8> year{};
  std::snprintf(year.data(), year.size(), "%04d", (fields.tm_year + 1900) % 100'000);
  std::string filled(format);
  if (const std::size_t at = filled.find("%Y"); at != std::string::npos) filled.replace(at, 2, year.data());
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), filled.c_str(), &fields)};
}

std::string_view after_day(std::string_view text) {
  return text.substr(std::min(text.find(' '), text.size()));
}

bool names_a_day(std::string_view text, const char* format) {
  std::string_view name = text.substr(0, text.find(' '));
  if (format == kFixdate || format == kRfc850) {
    if (!name.ends_with(',')) return false;
    name.remove_suffix(1);
  }
  constexpr std::array<std::string_view, 7> kNames = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                      "Thursday", "Friday", "Saturday"};
  return std::ranges::any_of(kNames, [&](std::string_view whole) {
    return name == (format == kRfc850 ? whole : whole.substr(0, 3));
  });
}

void check_text(std::string_view text, sys_seconds now) {
  const auto time = parse_http_date(text, now);
  if (!time) return;
  bool found = false;
  for (const char* format : {kFixdate, kRfc850, kAsctime, kAsctimeZero}) {
    if (!names_a_day(text, format)) continue;
    const std::string usual = print(*time, format);
    const std::string leap = print(*time - std::chrono::seconds(1), format, true);
    const bool equal = after_day(text) == after_day(usual) || after_day(text) == after_day(leap);
    found = found || equal;
    if (!equal || format != kRfc850) continue;
    // A leap second at the end of a year belongs to that year.
    const int year = year_of(after_day(text) == after_day(usual) ? *time : *time - std::chrono::seconds(1));
    expect(year <= year_of(now) + 50 && year > year_of(now) - 150, "two digits mean a year near now", text);
  }
  expect(found, "an accepted text is a date in one of the formats", text);
  if (time->time_since_epoch().count() >= kYear10000) return;
  expect(parse_http_date(format_http_date(*time), now) == time, "what is parsed can be printed and parsed",
         text);
}

void check_time(sys_seconds time, sys_seconds now) {
  const std::string canonical = print(time, kFixdate);
  expect(format_http_date(time) == canonical, "a time is printed as the C library does", canonical);
  for (const char* format : {kFixdate, kAsctime, kAsctimeZero, kRfc850}) {
    // Two digits mean a year of this century, or of the past one.
    const int century = year_of(now) / 100 * 100;
    if (format == kRfc850 &&
        (year_of(time) < century || year_of(time) >= std::min(century + 100, year_of(now) + 51)))
      continue;
    const std::string text = print(time, format);
    expect(parse_http_date(text, now) == time, "a printed time is found again", text);
  }
}

void check_date(fuzz::Input input) {
  const sys_seconds now(std::chrono::seconds(input.number(4)));
  const auto span = static_cast<std::uint64_t>(kYear10000 - kYear0);
  const sys_seconds time(std::chrono::seconds(kYear0 + static_cast<std::int64_t>(input.number(5) % span)));
  check_time(time, now);
  check_text(input.rest(), now);
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_date({data, size});
  return 0;
}
