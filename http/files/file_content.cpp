#include <tuza/http/files/file_content.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace tuza::http {
namespace {

using namespace std::chrono;

// What fits into nanoseconds, with room for sums: the years 1678 to 2261.
constexpr std::int64_t kSecondsMax =
    std::numeric_limits<std::int64_t>::max() / 1'000'000'000 - std::int64_t{366} * 86'400;

class Text {
 public:
  void add(std::string_view text) { at_ = std::copy(text.begin(), text.end(), at_); }
  void hex(std::uint64_t value) { at_ = std::to_chars(at_, text_.data() + text_.size(), value, 16).ptr; }
  [[nodiscard]] std::string string() const {
    return {text_.data(), static_cast<std::size_t>(at_ - text_.data())};
  }

 private:
  std::array<char, 80> text_;  // four numbers of at most 16 digits, and what stands between them
  char* at_ = text_.data();
};

}  // namespace

sys_time<nanoseconds> time_of(const struct timespec& time) {
  return sys_time<nanoseconds>(seconds(std::clamp(std::int64_t{time.tv_sec}, -kSecondsMax, kSecondsMax)) +
                               nanoseconds(time.tv_nsec));
}

bool is_settled(const struct stat& info, system_clock::time_point now, nanoseconds settled) {
  return time_of(info.st_mtim) + settled <= now && time_of(info.st_ctim) + settled <= now;
}

Validators validators_of(const struct stat& info, system_clock::time_point now) {
  const sys_time<nanoseconds> modified = time_of(info.st_mtim);
  const bool settled = modified + kSettled <= now;
  Text tag;
  tag.add(settled ? "\"" : "W/\"");
  tag.hex(info.st_ino);
  tag.add("-");
  tag.hex(static_cast<std::uint64_t>(info.st_size));
  tag.add("-");
  tag.hex(static_cast<std::uint64_t>(info.st_mtim.tv_sec));
  tag.add(".");
  tag.hex(static_cast<std::uint64_t>(info.st_mtim.tv_nsec));
  tag.add("\"");
  // RFC 9110 8.8.2.1: not later than the response itself.
  return {.etag = tag.string(),
          .last_modified = std::min(floor<seconds>(modified), floor<seconds>(now)),
          .date_is_strong = settled};
}

}  // namespace tuza::http
