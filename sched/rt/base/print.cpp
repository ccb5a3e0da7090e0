#include <tuza/sched/rt/base/print.h>

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/rt/base/write_now.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace tuza::rt {

Line& Line::operator<<(std::string_view text) {
  const std::size_t n = std::min(text.size(), kCapacity - size_);
  if (n == 0) return *this;  // an empty text may have no address
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

namespace {

// The last line found no room. Relaxed: a stale value is corrected by the next line.
std::atomic<bool> g_stalled{false};
std::atomic<bool> g_last_words{false};

std::int64_t patience_ns(Patience patience) {
  if (g_stalled.load(std::memory_order_relaxed)) return 0;
  if (g_last_words.load(std::memory_order_relaxed)) patience = Patience::kLong;
  switch (patience) {
    case Patience::kNone: return 0;
    case Patience::kMoment: return 50'000'000;
    case Patience::kLong: return 2'000'000'000;
  }
  return 0;
}

// Whether `fd` accepts a line within `wait_ns`. True if the system cannot tell (seccomp).
bool has_room(int fd, std::int64_t wait_ns) {
  struct pollfd ask{.fd = fd, .events = POLLOUT, .revents = 0};
  struct timespec patience{.tv_sec = wait_ns / 1'000'000'000, .tv_nsec = wait_ns % 1'000'000'000};
  long ready = 0;
  do ready = sys::poll(&ask, 1, &patience);
  while (ready == -EINTR);
  return ready != 0;
}

}  // namespace

void Line::flush() {
  std::size_t done = 0;
  while (fd_ != kNowhere && done < size_) {
    const bool room = has_room(fd_, patience_ns(patience_));
    g_stalled.store(!room, std::memory_order_relaxed);
    if (!room) break;
    const long n = write_now(fd_, text_ + done, size_ - done);
    if (n == -EINTR) continue;
    if (n <= 0) break;  // there is nowhere to report the error
    done += static_cast<std::size_t>(n);
  }
  size_ = 0;
}

void print_lines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    Line() << text.substr(0, end);
    text.remove_prefix(end);
  }
}

void print_last_words() {
  g_stalled.store(false, std::memory_order_relaxed);
  g_last_words.store(true, std::memory_order_relaxed);
}

}  // namespace tuza::rt
