// A poller without an operating system: streams that are byte counts, and a back end that watches them.
//
// It implements the contract of poller.h to the letter and shows how little that is. The contract's tests run
// on it beside the real back ends, so that a test which demands more than the contract promises fails.
//
// Thread-safe.
#pragma once

#include <tuza/netpoll/poll/poller.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>

namespace tuza::net::testing {

class FakePoller;

// The kernel: numbered stream ends, connected in pairs.
class FakeKernel {
 public:
  static constexpr std::size_t kBufferBytes = 4096;

  static FakeKernel& instance() {
    static FakeKernel kernel;
    return kernel;
  }

  std::pair<int, int> open_pair();
  // Return the number of bytes sent or received: 0 if there is no room, or no data.
  std::size_t send(int fd, std::size_t n);
  std::size_t receive(int fd, std::size_t n);
  void close(int fd);

 private:
  friend class FakePoller;
  struct End {
    int peer;                      // -1: gone
    std::size_t received = 0;      // not read yet
    FakePoller* poller = nullptr;  // the poller that watches it
    std::uint64_t cookie = 0;
  };
  int lowest_free() const;
  void notify(End& end, bool readable, bool writable);  // with mutex_ held
  PollEvent state_of(const End& end) const;

  std::mutex mutex_;
  std::map<int, End> ends_;  // guarded by mutex_
};

class FakePoller {
 public:
  explicit FakePoller(long& error) { error = 0; }
  ~FakePoller();

  long add(int fd, std::uint64_t cookie);
  // It may report more than was requested.
  long add_reader(int fd, std::uint64_t cookie) { return add(fd, cookie); }
  long watch_writes(int fd, std::uint64_t cookie) { return add(fd, cookie); }
  std::size_t wait(std::int64_t timeout_ns, std::span<PollEvent> into);
  void wake();

 private:
  friend class FakeKernel;
  // All guarded by the kernel's mutex.
  std::condition_variable changed_;
  std::deque<PollEvent> events_;
  bool woken_ = false;
};

}  // namespace tuza::net::testing
