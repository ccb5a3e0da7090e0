// Prints to standard error where nothing may be allocated or locked: in signal handlers, in the scheduler, in a
// process that is about to abort.
//
// A Line collects text in a fixed buffer, and passes it to the kernel in one call when it is destroyed, so that
// the lines of several threads do not mix. Text beyond the buffer is cut off.
//
// A stalled reader of a pipe, a socket or a terminal does not stop the program. One line waits briefly for room;
// after that no line waits until there is room again. A line that finds no room is lost.
//
// Each Line belongs to one thread. Writing blocks the M; nothing parks.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza::rt {

// The maximum time that a line waits for room.
enum class Patience : std::uint8_t {
  kNone,    // no wait: for threads that others depend on
  kMoment,  // 50 ms
  kLong,    // 2 s: for the last messages of a process that ends
};

class Line {
 public:
  static constexpr int kNowhere = -1;  // flush() prints nothing: for callers of text() only
  explicit Line(int fd = 2, Patience patience = Patience::kMoment) : fd_(fd), patience_(patience) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { flush(); }

  Line& operator<<(std::string_view text);
  Line& operator<<(const char* text) { return *this << std::string_view(text); }
  Line& operator<<(char c) { return *this << std::string_view(&c, 1); }
  Line& operator<<(std::integral auto value) {
    if constexpr (std::signed_integral<decltype(value)>) {
      return decimal(value < 0,
                     value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
    } else {
      return decimal(false, value);
    }
  }
  Line& hex(std::uint64_t value);
  Line& operator<<(const void* address) { return hex(reinterpret_cast<std::uintptr_t>(address)); }
  // With a suitable unit: "250 ms", "12 s", "3 min", "5 h".
  Line& duration(std::int64_t nanoseconds);

  [[nodiscard]] std::string_view text() const { return {text_, size_}; }
  void flush();

 private:
  Line& decimal(bool negative, std::uint64_t magnitude);

  static constexpr std::size_t kCapacity = 1000;
  int fd_;
  Patience patience_;
  std::size_t size_ = 0;
  char text_[kCapacity];
};

// Prints a text of several lines, each as a Line.
void print_lines(std::string_view text);

// From now on every line waits up to kLong.
void print_last_words();

}  // namespace tuza::rt
