// The Date header, formatted at most once per second.
//
// RFC 9110 5.6.7. Each connection's working set has its own Date, so that threads share nothing.
// Thread-unsafe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza::http {

class Date {
 public:
  static constexpr std::size_t kLineBytes = 37;
  // "Date: Fri, 20 Nov 2026 20:15:00 GMT\r\n". `coarse_ns`: a monotonic time that may lag by milliseconds.
  std::string_view line(std::int64_t coarse_ns) {
    if (coarse_ns >= next_ns_) [[unlikely]]
      refresh(coarse_ns);
    return {text_.data(), text_.size()};
  }

 private:
  void refresh(std::int64_t coarse_ns);

  std::array<char, kLineBytes> text_{};
  std::int64_t next_ns_ = 0;  // when the current second of the wall clock ends
};

}  // namespace tuza::http
