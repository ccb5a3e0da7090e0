#include <tuza/netpoll/poll/splice_pipe.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <tuza/netpoll/poll/descriptor_limit.h>
#include <tuza/netpoll/poll/netpoller.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/enter.h>

#include <array>
#include <atomic>

namespace tuza::net {
namespace {

// Four times the usual size: with it a transfer took a quarter less CPU time, and with 1 MiB hardly less than that.
constexpr int kPipeBytes = 256 << 10;

std::atomic<std::size_t> g_open_pipes{0};  // a count that orders nothing

}  // namespace

struct SplicePipe::Kept {
  rt::RawMutex mutex;
  std::array<Ends, kKeptMax> ends TUZA_GUARDED_BY(mutex);
  std::size_t size TUZA_GUARDED_BY(mutex) = 0;
  std::uint32_t generation TUZA_GUARDED_BY(mutex) = 0;  // of the Netpoller, when they were kept

  // False: none, or only some of another runtime, which are for the caller to close.
  bool take(Ends& one, std::array<Ends, kKeptMax>& strangers, std::size_t& strangers_size) {
    const rt::Enter rt;  // a goroutine must not lose its P while it holds the mutex
    const LockGuard lock(mutex);
    if (const std::uint32_t now = Netpoller::generation(); generation != now) {
      generation = now;
      strangers = ends;
      strangers_size = std::exchange(size, 0);
    }
    if (size == 0) return false;
    one = ends[--size];
    return true;
  }
  bool put(Ends one) {
    const rt::Enter rt;
    const LockGuard lock(mutex);
    if (size == kKeptMax || generation != Netpoller::generation()) return false;
    ends[size++] = one;
    return true;
  }

  static Kept& all() {
    static constinit Kept kept;
    return kept;
  }
};

void SplicePipe::close(Ends ends) {
  sys::close(ends.read);
  sys::close(ends.write);
  g_open_pipes.fetch_sub(1, std::memory_order_relaxed);
}

SplicePipe SplicePipe::take() {
  Ends ends;
  std::array<Ends, kKeptMax> strangers;
  std::size_t strangers_size = 0;
  const bool kept = Kept::all().take(ends, strangers, strangers_size);
  for (std::size_t i = 0; i < strangers_size; ++i) close(strangers[i]);
  if (kept) return SplicePipe(ends);
  if (g_open_pipes.fetch_add(1, std::memory_order_relaxed) < descriptors_allowed() / 8) {
    std::array<int, 2> both{-1, -1};
    if (sys::pipe2(both.data(), O_CLOEXEC | O_NONBLOCK) == 0) {
      // Refused, to users with many pipes, it is smaller.
      sys::fcntl(both[0], F_SETPIPE_SZ, kPipeBytes);
      return SplicePipe({both[0], both[1]});
    }
  }
  g_open_pipes.fetch_sub(1, std::memory_order_relaxed);
  return SplicePipe(ends);
}

SplicePipe::~SplicePipe() {
  if (ends_.write >= 0 && (bytes_ != 0 || !Kept::all().put(ends_))) close(ends_);
}

std::size_t SplicePipe::open_pipes() { return g_open_pipes.load(std::memory_order_relaxed); }

long SplicePipe::fill_from(int socket, std::size_t most) {
  const long n =
      sys::invoke(SYS_splice, socket, nullptr, ends_.write, nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n > 0) bytes_ += static_cast<std::size_t>(n);
  return n;
}

long SplicePipe::drain_to(int socket) {
  const long n = sys::invoke(SYS_splice, ends_.read, nullptr, socket, nullptr, bytes_,
                             SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n > 0) bytes_ -= static_cast<std::size_t>(n);
  return n;
}

}  // namespace tuza::net
