// The text of a log line: in a form for people, or as a JSON object.
//
//     2026-11-22T02:52:30.123Z info    serving HTTP on 127.0.0.1:8080
//     {"time":"2026-11-22T02:52:30.123Z","level":"info","message":"serving HTTP on 127.0.0.1:8080"}
//
// Text from outside can neither start a new line nor control a terminal: control characters are escaped, as \x1b, and so
// are characters that separate lines, change the direction of text or are invisible, as \u202e. In JSON, bytes that are not valid UTF-8 become U+FFFD. Times are UTC.
//
// Thread-compatible: a line belongs to one goroutine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tuza::logging {

enum class Form : std::uint8_t { kConsole, kJson };

// The buffer is on the stack unless the line is long: one line per request must not cost one allocation per request.
class Line {
 public:
  // Begins a line. Console: `TIME info   `. JSON: `{"time":"TIME","level":"info"`. `ns`: nanoseconds since 1970.
  // `level`: "info".
  Line(Form form, std::int64_t ns, std::string_view level);
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // Appends ` text`, or `,"message":"text"`.
  void message(std::string_view text);
  // Appends `text` unchanged.
  void literal(std::string_view text) {
    std::char_traits<char>::copy(room_for(text.size()), text.data(), text.size());
    end_ += text.size();
  }
  // Appends text from outside, escaped. In JSON it is the contents of a string, without the quotes.
  void escaped(std::string_view text);
  // The same between quotation marks, which it cannot end: in the console, too, those within it and backslashes are escaped.
  void quoted(std::string_view text) {
    literal("\"");
    in_quotes(text);
    literal("\"");
  }
  // The same where the caller writes the quotation marks.
  void in_quotes(std::string_view text);
  void number(std::uint64_t number);
  // Completes the line, with its line end. Nothing may be appended afterwards.
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

// The time of the wall clock in nanoseconds since 1970.
std::int64_t wall_now_ns();
// The same for a reading of the monotonic clock (rt::now_ns()) that was just taken. If the wall clock is set, up to
// 100 ms may pass before the result follows.
std::int64_t wall_ns_at(std::int64_t monotonic_ns);

}  // namespace tuza::logging
