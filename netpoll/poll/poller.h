// Interface to the operating system's event mechanism: one contract, one file per backend.
//
// A backend watches descriptors for one direction or both, edge-triggered, with one registration each, and
// returns events with the cookie given at registration. The contract:
//
//   - after add(), every transition to readable or writable yields an event; a descriptor that is already
//     readable or writable yields an event too;
//   - add_reader() is the same for readability; it need not report writability before watch_writes(), which
//     does for that direction what add() does;
//   - events may be spurious, and several transitions may come as one event, but none is lost;
//   - an event that also reports the end of the stream, an error or a hang-up says so (hung_up: a short read no
//     longer shows that the socket is drained), and is then both readable and writable, so that a waiter finds
//     out by trying. So does one that reports urgent data, if the back end can (kReportsUrgentData). The writing end of a
//     pipe whose readers have gone is registered without an error, and reported as ended;
//   - closing the descriptor ends its registration, if no other descriptor refers to the same open file, in
//     this process or another (with kClosingRemoves: in any case); remove() ends it in any case. An event that was under
//     way may still arrive;
//   - wake() makes the current or next blocking wait() return at once. It is not an event. Writes made before
//     wake() are visible after that wait() returns;
//   - a system that begins to refuse these calls, in a sandbox that the program has entered, costs only
//     events: wait() logs this once, sleeps for a few milliseconds and returns without events.
//
// Thread-safe: wait() may run on several threads at once, the other functions at any time.
// Backends: poller_epoll.cpp (Linux), poller_kqueue.cpp (macOS and the BSDs). CMake's TUZA_POLLER chooses one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
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
#if defined(TUZA_POLLER_KQUEUE)
  static constexpr bool kReportsUrgentData = false;
  // Closing a number ends its registration at once, even if others have the file open or a thread waits for events.
  static constexpr bool kClosingRemoves = true;
#else
  static constexpr bool kReportsUrgentData = true;
  static constexpr bool kClosingRemoves = false;
#endif

  // Sets `error` to 0, or to -errno; the poller is then unusable. Also sets an error where the system refuses
  // to wait: opening a descriptor then fails, instead of its user waiting for ever.
  explicit Poller(long& error);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Registers `fd` for both directions; 0 or -errno.
  long add(int fd, std::uint64_t cookie);
  // The same for reading only. Most sockets never wait to write: they are spared an event at the beginning.
  long add_reader(int fd, std::uint64_t cookie);
  // Watches a registered descriptor for both directions from now on. 0 or -errno.
  long watch_writes(int fd, std::uint64_t cookie);
  void remove(int fd);

  // After an event of the registered socket `fd` that said hung_up: whether its peer sends nothing more, or the connection has
  // failed; false if the event reported urgent data. Does not wait.
  static bool has_ended(int fd);

  // Waits for events for at most `timeout_ns` (0: does not wait; negative: no limit), and returns their
  // number. Blocks the M.
  std::size_t wait(std::int64_t timeout_ns, std::span<PollEvent> into);

  void wake();

 private:
  struct State;  // of the back end

  // The system has refused to wait, or to end a wake-up: logs that once, and sleeps where the caller would have waited.
  void refused(std::string_view call, long error, std::int64_t timeout_ns);

  const std::unique_ptr<State> state_;
  std::atomic<bool> refusal_logged_{false};
};

// Poller::wait() by a name that no compiler mangles. The netpoller calls it by this name, so that the linker of a test
// program can put a spy in between (tests/poller_spy.h).
extern "C" std::size_t tuza_poller_wait(Poller& poller, std::int64_t timeout_ns, PollEvent* into,
                                        std::size_t into_size);

}  // namespace tuza::net
