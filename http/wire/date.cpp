#include <tuza/http/wire/date.h>

#include <time.h>

#include <cstddef>
#include <cstring>

namespace tuza::http {
namespace {

void put_two_digits(char* at, int value) {
  at[0] = static_cast<char>('0' + value / 10);
  at[1] = static_cast<char>('0' + value % 10);
}

}  // namespace

void Date::refresh(std::int64_t coarse_ns) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct tm t;
  gmtime_r(&now.tv_sec, &t);
  constexpr char kDays[] = "SunMonTueWedThuFriSat";
  constexpr char kMonths[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  constexpr char kForm[] = "Date: Day, 00 Mon 0000 00:00:00 GMT\r\n";
  std::memcpy(text_.data(), kForm, text_.size());
  std::memcpy(text_.data() + 6, kDays + std::ptrdiff_t{3} * t.tm_wday, 3);
  put_two_digits(text_.data() + 11, t.tm_mday);
  std::memcpy(text_.data() + 14, kMonths + std::ptrdiff_t{3} * t.tm_mon, 3);
  put_two_digits(text_.data() + 18, (t.tm_year + 1900) / 100);
  put_two_digits(text_.data() + 20, t.tm_year % 100);
  put_two_digits(text_.data() + 23, t.tm_hour);
  put_two_digits(text_.data() + 26, t.tm_min);
  put_two_digits(text_.data() + 29, t.tm_sec);
  next_ns_ = coarse_ns + 1'000'000'000 - now.tv_nsec;
}

}  // namespace tuza::http
