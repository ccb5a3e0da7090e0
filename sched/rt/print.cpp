#include <tuza/sched/rt/print.h>

#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

#include <algorithm>
#include <cstring>

namespace tuza::rt {

Line& Line::operator<<(std::string_view text) {
  const std::size_t n = std::min(text.size(), kCapacity - size_);
  std::memcpy(text_ + size_, text.data(), n);
  size_ += n;
  return *this;
}

Line& Line::decimal(bool negative, std::uint64_t magnitude) {
  char digits[21];
  char* p = digits + sizeof digits;
  do {
    *--p = static_cast<char>('0' + magnitude % 10);
    magnitude /= 10;
  } while (magnitude != 0);
  if (negative) *--p = '-';
  return *this << std::string_view(p, static_cast<std::size_t>(digits + sizeof digits - p));
}

Line& Line::hex(std::uint64_t value) {
  char digits[18];
  char* p = digits + sizeof digits;
  do {
    *--p = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value != 0);
  *--p = 'x';
  *--p = '0';
  return *this << std::string_view(p, static_cast<std::size_t>(digits + sizeof digits - p));
}

Line& Line::duration(std::int64_t nanoseconds) {
  const std::int64_t ms = std::max<std::int64_t>(nanoseconds, 0) / 1'000'000;
  if (ms < 10'000) return *this << ms << " ms";
  if (ms < 600'000) return *this << ms / 1000 << " s";
  if (ms < 36'000'000) return *this << ms / 60'000 << " min";
  return *this << ms / 3'600'000 << " h";
}

void Line::flush() {
  std::size_t done = 0;
  while (fd_ != kNowhere && done < size_) {
    const long n = sys::invoke(SYS_write, fd_, text_ + done, size_ - done);
    if (n <= 0) break;  // nobody is left to tell
    done += static_cast<std::size_t>(n);
  }
  size_ = 0;
}

}  // namespace tuza::rt
