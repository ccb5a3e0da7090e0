// The port to the operating system's event mechanism. One contract, one file per backend.
//
// A backend watches descriptors for one direction or both, edge-triggered, one registration each, and hands
// out events with the cookie the registration was given. What it promises:
//
//   - after add(), every transition to readable or writable yields an event; if the descriptor is readable
//     or writable already, so does that;
//   - add_reader() is the same for becoming readable; of becoming writable it need not tell before
//     watch_writes(), which for that direction is what add() is;
//   - events may be spurious, and several transitions may come as one event, but none is forgotten;
//   - an event that also tells of the end of the stream, an error, a hang-up or urgent data says so (hung_up:
//     a short read means nothing any more), and is both readable and writable then, so that whoever waits
//     finds out by trying;
//   - closing the descriptor ends its registration, if no other descriptor is of the same open file, in this
//     process or another; remove() ends it in any case. An event that was under way may still come;
//   - wake() makes a wait() that blocks, now or next, return at once. It is not an event. What was done
//     before wake() is visible after the return of that wait();
//   - a system that refuses what it allowed at first, in a sandbox that the program has entered, costs events and
//     nothing else: wait() says so once in the log, naps for a few milliseconds and returns without events.
//
// Thread-safe: wait() on several threads at once, the others at any time.
// Backends: poller_epoll.cpp (Linux).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace tuza::net {

struct PollEvent {
  std::uint64_t cookie;
  bool readable;
  bool writable;
  bool hung_up;
};

class Poller {
 public:
  // Sets `error` to 0, or to -errno; the poller is useless then. So it is where the system refuses to wait: whoever
  // opens a descriptor is told, instead of waiting for ever.
  explicit Poller(long& error);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Registers `fd`, for both directions; 0 or -errno.
  long add(int fd, std::uint64_t cookie);
  // The same for reading only. Most sockets never wait to write: they are spared an event at the beginning.
  long add_reader(int fd, std::uint64_t cookie);
  // Of one that is registered: for both directions from now on. 0 or -errno.
  long watch_writes(int fd, std::uint64_t cookie);
  void remove(int fd);

  // Waits for at most `timeout_ns` (0: not at all; negative: for ever) until there are events, and returns
  // how many. Blocks the M.
  std::size_t wait(std::int64_t timeout_ns, std::span<PollEvent> into);

  void wake();

 private:
  void end_wake(std::uint32_t events, std::int64_t timeout_ns);
  void refused(std::string_view call, long error, std::int64_t timeout_ns);

  int poll_fd_ = -1;
  int wake_fd_ = -1;
  std::atomic<bool> wake_pending_{false};
  std::atomic<bool> wakes_by_interest_{false};  // the system refuses to write or read wake_fd_
  std::atomic<bool> refusal_logged_{false};
};

}  // namespace tuza::net
