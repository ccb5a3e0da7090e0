#include <tuza/framework/log/line.h>

#include <time.h>
#include <tuza/framework/log/utf8.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/sched/rt/base/clock.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>

namespace tuza::logging {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kEscapeBytesMax = 12;  // "\udb40\udc41"

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

// Whether all eight bytes are plain. The highest bit of each byte holds the result for that byte. A borrow can falsify
// only the bytes above one that is not plain, so it does not change the answer.
bool are_plain(std::uint64_t eight) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  const auto has_zero = [](std::uint64_t v) { return (v - kOnes) & ~v & kHigh; };
  const std::uint64_t control = (eight - kOnes * 0x20) & ~eight & kHigh;
  const std::uint64_t special =
      has_zero(eight ^ kOnes * '"') | has_zero(eight ^ kOnes * '\\') | has_zero(eight ^ kOnes * 0x7f);
  return ((eight & kHigh) | control | special) == 0;
}

bool are_plain(const char* at) {
  std::uint64_t eight = 0;
  std::memcpy(&eight, at, sizeof eight);
  return are_plain(eight);
}

std::size_t plain_length(std::string_view text) {
  constexpr std::size_t kStep = sizeof(std::uint64_t);
  std::size_t n = 0;
  while (n + kStep <= text.size() && are_plain(text.data() + n)) n += kStep;
  // If all bytes so far are plain, test the last eight at once, even though some of them have been tested before.
  const bool at_the_end = text.size() >= kStep && n + kStep > text.size();
  if (at_the_end && are_plain(text.data() + text.size() - kStep)) return text.size();
  while (n < text.size() && is_plain(text[n])) ++n;
  return n;
}

char* put(char* at, std::string_view text) { return std::ranges::copy(text, at).out; }

char* put_escape(char* at, Form form, unsigned code) {
  at = put(at, form == Form::kJson ? "\\u00" : "\\x");
  *at++ = kHexDigits[code >> 4];
  *at++ = kHexDigits[code & 15];
  return at;
}

bool is_deceptive(std::string_view character) {
  return character.size() > 1 && http::detail::is_deceptive(http::detail::utf8_char(character).code);
}

char* put_unit(char* at, char32_t unit) {
  at = put(at, "\\u");
  for (int shift = 12; shift >= 0; shift -= 4) *at++ = kHexDigits[(unit >> shift) & 15];
  return at;
}

// In UTF-16, as JSON has it.
char* put_units(char* at, char32_t code) {
  if (code <= 0xffff) return put_unit(at, code);
  return put_unit(put_unit(at, 0xd800 + ((code - 0x10000) >> 10)), 0xdc00 + (code & 0x3ff));
}

// Writes the character at the beginning of `text`, which is not plain, escaped if necessary, and removes it from
// `text`.
char* put_unusual(char* at, Form form, std::string_view& text) {
  const auto byte = static_cast<unsigned char>(text.front());
  const std::size_t length = byte < 0x80 ? 1 : utf8_length(text);
  const auto second = static_cast<unsigned char>(length == 2 ? text[1] : '\0');
  if (byte < 0x20 || byte == 0x7f) {
    at = put_escape(at, form, byte);
  } else if (length == 0) {
    at = form == Form::kJson ? put(at, "\\ufffd") : put_escape(at, form, byte);
  } else if (byte == 0xc2 && second < 0xa0) {  // U+0080 to U+009F, which control terminals as well
    at = put_escape(at, form, second);
  } else if (is_deceptive(text.substr(0, length))) {
    at = put_units(at, http::detail::utf8_char(text).code);
  } else if (length == 1 && form == Form::kJson) {
    *at++ = '\\';  // a quotation mark or a backslash
    *at++ = text.front();
  } else {
    at = put(at, text.substr(0, length));
  }
  text.remove_prefix(std::max<std::size_t>(length, 1));
  return at;
}

void put_two(char* at, std::uint32_t value) {
  at[0] = static_cast<char>('0' + value / 10);
  at[1] = static_cast<char>('0' + value % 10);
}

// Year, month and day as the number 20261122. The last result is cached in one word together with its argument, so
// that it is computed once a day.
std::uint32_t date_of(std::uint32_t days) {
  static std::atomic<std::uint64_t> last{0};  // relaxed: the word holds all of the shared state
  const std::uint64_t known = last.load(std::memory_order_relaxed);
  if (known >> 32 == days && known != 0) return static_cast<std::uint32_t>(known);
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  const std::uint32_t number = static_cast<std::uint32_t>(static_cast<int>(date.year())) * 10'000 +
                               static_cast<unsigned>(date.month()) * 100 + static_cast<unsigned>(date.day());
  last.store(std::uint64_t{days} << 32 | number, std::memory_order_relaxed);
  return number;
}

}  // namespace

Line::Line(Form form, std::int64_t ns, std::string_view level) : form_(form) {
  if (form == Form::kJson) literal(R"({"time":")");
  time(ns);
  if (form == Form::kJson) {
    literal(R"(","level":")");
    literal(level);
    literal("\"");
  } else {
    constexpr std::string_view kPadding = "       ";  // "warning"
    literal(" ");
    literal(level);
    if (level.size() < kPadding.size()) literal(kPadding.substr(level.size()));
  }
}

// "2026-11-22T02:52:30.123Z"
void Line::time(std::int64_t ns) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  constexpr std::int64_t kDayMs = 86'400'000;
  const std::int64_t since_1970_ms = std::max<std::int64_t>(ns / kMillisecond, 0);
  const auto ms = static_cast<std::uint32_t>(since_1970_ms % kDayMs);
  const std::uint32_t date = date_of(static_cast<std::uint32_t>(since_1970_ms / kDayMs));
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000Z";
  char* const at = room_for(kForm.size());
  put(at, kForm);
  put_two(at, date / 1'000'000);
  put_two(at + 2, date / 10'000 % 100);
  put_two(at + 5, date / 100 % 100);
  put_two(at + 8, date % 100);
  put_two(at + 11, ms / 3'600'000);
  put_two(at + 14, ms / 60'000 % 60);
  put_two(at + 17, ms / 1000 % 60);
  put_two(at + 20, ms % 1000 / 10);
  at[22] = static_cast<char>('0' + ms % 10);
  end_ += kForm.size();
}

void Line::message(std::string_view text) {
  literal(form_ == Form::kJson ? R"(,"message":")" : " ");
  escaped(text);
  if (form_ == Form::kJson) literal("\"");
}

void Line::escaped(std::string_view text) {
  while (!text.empty()) {
    const std::size_t plain = plain_length(text);
    literal(text.substr(0, plain));
    text.remove_prefix(plain);
    if (!text.empty()) end_ = put_unusual(room_for(kEscapeBytesMax), form_, text);
  }
}

void Line::in_quotes(std::string_view text) {
  while (form_ == Form::kConsole) {
    const std::size_t special = std::min(text.find_first_of("\"\\"), text.size());
    escaped(text.substr(0, special));
    text.remove_prefix(special);
    if (text.empty()) break;
    literal("\\");
    literal(text.substr(0, 1));
    text.remove_prefix(1);
  }
  escaped(text);
}

void Line::number(std::uint64_t number) {
  constexpr std::size_t kDigitsMax = 20;
  char* const at = room_for(kDigitsMax);
  end_ = std::to_chars(at, at + kDigitsMax, number).ptr;
}

std::string_view Line::finish() {
  literal(form_ == Form::kJson ? "}\n" : "\n");
  return {begin_, end_};
}

void Line::grow(std::size_t bytes) {
  const auto used = static_cast<std::size_t>(end_ - begin_);
  const std::size_t size = 2 * (used + bytes);
  auto larger = std::make_unique_for_overwrite<char[]>(size);
  std::memcpy(larger.get(), begin_, used);
  heap_ = std::move(larger);
  begin_ = heap_.get();
  end_ = begin_ + used;
  limit_ = begin_ + size;
}

std::int64_t wall_now_ns() {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t wall_ns_at(std::int64_t monotonic_ns) {
  constexpr std::int64_t kGoodForNs = 100'000'000;
  static std::atomic<std::int64_t> offset{0};
  static std::atomic<std::int64_t> good_until{0};  // release: a reader of it sees an offset at least as new
  if (monotonic_ns >= good_until.load(std::memory_order_acquire)) {
    offset.store(wall_now_ns() - rt::now_ns(), std::memory_order_relaxed);
    good_until.store(monotonic_ns + kGoodForNs, std::memory_order_release);
  }
  return monotonic_ns + offset.load(std::memory_order_relaxed);
}

}  // namespace tuza::logging
