#include <tuza/framework/stderr_sink.h>

#include <tuza/sched/arch/syscall.h>

#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace tuza {
namespace {

constexpr long kPatienceNs = 100'000'000;
// What a pipe that says it has room takes without blocking (PIPE_BUF).
constexpr std::size_t kPieceBytes = 4096;

class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(int fd) : fd_(fd) {}

 private:
  enum class Room { kYes, kNo, kClosed };

  void sink_it_(const spdlog::details::log_msg& msg) override {
    spdlog::memory_buf_t line;
    formatter_->format(msg, line);
    if (dropped_ == 0) [[likely]] {
      if (!write({line.data(), line.size()})) ++dropped_;
      return;
    }
    std::string text = cut_off_ ? "\n" : "";
    text += "(" + std::to_string(dropped_) + (dropped_ == 1 ? " line" : " lines") + " dropped here)\n";
    text.append(line.data(), line.size());
    const std::uint64_t before = std::exchange(dropped_, 0);
    if (!write(text)) dropped_ = before + 1;
  }
  void flush_() override {}

  // False: there was no room for all of it.
  bool write(std::string_view text) {
    bool begun = false;
    while (!text.empty()) {
      const Room room = wait_for_room();
      if (room == Room::kClosed) return true;
      const long n = room == Room::kNo
                         ? -EAGAIN
                         : sys::invoke(SYS_write, fd_, text.data(), std::min(text.size(), kPieceBytes));
      if (n == -EINTR) continue;
      if (n == -EAGAIN) {
        cut_off_ = cut_off_ || begun;
        return false;
      }
      if (n < 0) return true;  // EPIPE, a full disk: nobody to tell
      begun = true;
      cut_off_ = false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  Room wait_for_room() {
    struct pollfd ask{.fd = fd_, .events = POLLOUT, .revents = 0};
    const struct timespec patience{.tv_sec = 0, .tv_nsec = stalled_ ? 0 : kPatienceNs};
    long ready = 0;
    do {
      struct timespec left = patience;
      ready = sys::invoke(SYS_ppoll, &ask, 1, &left, nullptr, 0);
    } while (ready == -EINTR);
    stalled_ = ready <= 0;
    if (stalled_) return Room::kNo;
    return (ask.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 ? Room::kClosed : Room::kYes;
  }

  const int fd_;
  // Guarded by base_sink's mutex, as every call is.
  bool stalled_ = false;
  bool cut_off_ = false;  // what was written last is the beginning of a line
  std::uint64_t dropped_ = 0;
};

}  // namespace

std::shared_ptr<spdlog::sinks::sink> make_stderr_sink(int fd) { return std::make_shared<StderrSink>(fd); }

}  // namespace tuza
