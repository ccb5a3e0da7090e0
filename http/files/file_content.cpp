#include <tuza/http/files/file_content.h>
#include <tuza/netpoll/files/stat_times.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

using namespace std::chrono;

// What fits into nanoseconds, with room for sums: the years 1678 to 2261.
constexpr std::int64_t kSecondsMax =
    std::numeric_limits<std::int64_t>::max() / 1'000'000'000 - std::int64_t{366} * 86'400;

// Up to here, a time of modification is a constant of some tool, in any time zone.
constexpr sys_days kConstantTimes = 1980y / January / 3;

}  // namespace

sys_time<nanoseconds> time_of(const struct timespec& time) {
  return sys_time<nanoseconds>(seconds(std::clamp(std::int64_t{time.tv_sec}, -kSecondsMax, kSecondsMax)) +
                               nanoseconds(time.tv_nsec));
}

bool is_written_lately(const struct stat& info, system_clock::time_point now, nanoseconds settled) {
  const sys_time<nanoseconds> modified = time_of(tuza::detail::modified_at(info));
  if (modified + settled <= now) return false;
  // A time in the future has been set, and does not become the present by writing.
  return modified - settled < now || time_of(tuza::detail::changed_at(info)) + settled > now;
}

bool is_settled(const struct stat& info, system_clock::time_point now, nanoseconds settled) {
  return !is_written_lately(info, now, settled) && time_of(tuza::detail::changed_at(info)) + settled <= now;
}

bool has_true_time(const struct stat& info) {
  const auto modified = time_of(tuza::detail::modified_at(info)),
             changed = time_of(tuza::detail::changed_at(info));
  return changed - modified <= kSettled && modified - changed <= kSettled;
}

Validators validators_of(std::string etag, const struct stat& info, system_clock::time_point now) {
  const sys_time<nanoseconds> modified = time_of(tuza::detail::modified_at(info));
  // RFC 9110 8.8.2.1: not later than the response itself.
  return {.etag = std::move(etag),
          .last_modified = std::min(floor<seconds>(modified), floor<seconds>(now)),
          .has_date = modified >= kConstantTimes,
          .date_is_strong = modified + kSettled <= now && has_true_time(info)};
}

}  // namespace tuza::http
