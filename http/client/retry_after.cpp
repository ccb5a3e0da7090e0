#include <tuza/http/client/retry_after.h>

#include <tuza/http/files/http_date.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace tuza::http {
namespace {

using std::chrono::seconds;

// Beyond this all are the same; a sum with it does not overflow.
constexpr seconds kPauseMax = std::chrono::years(1);

}  // namespace

std::optional<seconds> retry_after(const ClientResponse& response) {
  const std::optional<std::string_view> text = response.header("Retry-After");
  if (!text || text->empty()) return std::nullopt;
  if (text->find_first_not_of("0123456789") == std::string_view::npos) {
    seconds::rep count = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
    return error == std::errc{} ? std::min(seconds(count), kPauseMax) : kPauseMax;
  }
  const auto now = std::chrono::floor<seconds>(std::chrono::system_clock::now());
  const std::optional<std::chrono::sys_seconds> when = parse_http_date(*text, now);
  if (!when) return std::nullopt;
  const std::optional<std::string_view> date = response.header("Date");
  const std::chrono::sys_seconds from = date ? parse_http_date(*date, now).value_or(now) : now;
  return std::clamp(seconds(*when - from), seconds(0), kPauseMax);
}

}  // namespace tuza::http
