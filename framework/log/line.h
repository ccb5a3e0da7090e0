// A log line as text: for people, or as a JSON object.
//
//     2026-11-22T02:52:30.123Z info    serving HTTP on 127.0.0.1:8080
//     {"time":"2026-11-22T02:52:30.123Z","level":"info","message":"serving HTTP on 127.0.0.1:8080"}
//
// What comes from outside can neither begin a line of its own nor steer a terminal: control characters are
// spelled out, as \x1b, and in JSON what is no UTF-8 becomes U+FFFD. Times are UTC.
//
// Thread-compatible: a line is one goroutine's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tuza::logging {

enum class Form : std::uint8_t { kConsole, kJson };

// On the stack, unless the line is long: a line per request must not cost an allocation per request.
class Line {
 public:
  // Console: `TIME info   `. JSON: `{"time":"TIME","level":"info"`. `ns`: since 1970. `level`: "info".
  Line(Form form, std::int64_t ns, std::string_view level);
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // ` text`, or `,"message":"text"`.
  void message(std::string_view text);
  // As it stands.
  void literal(std::string_view text) {
    std::char_traits<char>::copy(room_for(text.size()), text.data(), text.size());
    end_ += text.size();
  }
  // What comes from outside. In JSON it is the inside of a string.
  void escaped(std::string_view text);
  void number(std::uint64_t number);
  // The line with its end; nothing is added afterwards.
  [[nodiscard]] std::string_view finish();

 private:
  static constexpr std::size_t kOnStack = 1024;

  char* room_for(std::size_t bytes) {
    if (static_cast<std::size_t>(limit_ - end_) < bytes) [[unlikely]]
      grow(bytes);
    return end_;
  }
  void grow(std::size_t bytes);
  void time(std::int64_t ns);

  const Form form_;
  std::array<char, kOnStack> stack_;  // not initialized
  char* begin_ = stack_.data();
  char* end_ = stack_.data();
  char* limit_ = stack_.data() + kOnStack;
  std::unique_ptr<char[]> heap_;
};

// Of the wall clock, nanoseconds since 1970.
std::int64_t wall_now_ns();
// The same for a reading of the monotonic clock (rt::now_ns()) that was just taken. It may be 100 ms late to
// notice that somebody has set the wall clock.
std::int64_t wall_ns_at(std::int64_t monotonic_ns);

}  // namespace tuza::logging
