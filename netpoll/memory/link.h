// A connection in memory: two ends, and what each has received.
//
//        end 0                     end 1
//     write() --------------->  received, a ring  ---> read()
//     read()  <--- received  <------------------------ write()
//
// It behaves as TCP over loopback does on Linux. An end that closes with bytes it has not read, or aborts, resets the
// connection; otherwise its stream ends. What the peer writes to an end that is closed is taken, once, and answered by a
// reset. After a reset, what has arrived can still be read, and a stream that has ended before has ended.
//
// The functions do not wait: they say that a caller has to, and the waits are those of the two descriptors, which are told
// of every change. A change and the look for it happen under one lock, and the event is kept in the descriptor's slot
// (poll/wait_slot.h): it is not lost between the look and the wait.
//
// Thread-safe. Blocks the M for the time of copying a buffer at most; does not park.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/sched/rt/base/raw_mutex.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

namespace tuza::net::memory {

// The bytes that have arrived and are not read. Thread-unsafe.
class Ring {
 public:
  explicit Ring(std::size_t capacity)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t room() const { return capacity_ - size_; }
  // As many as fit; returns how many.
  std::size_t put(std::span<const std::byte> from);
  // As many as there are; returns how many. They stay unless the caller `takes` them.
  std::size_t get(std::span<std::byte> into, bool takes);

 private:
  const std::unique_ptr<std::byte[]> bytes_;
  const std::size_t capacity_;
  std::size_t begin_ = 0, size_ = 0;
};

// An error that a test has ordered, for one direction of one end.
struct Fault {
  std::size_t after_bytes;
  std::error_code code;
};

class Link {
 public:
  using Side = Descriptor::Side;

  // Each direction holds `buffer_bytes`, at least 1.
  explicit Link(std::size_t buffer_bytes) : ends_{End(buffer_bytes), End(buffer_bytes)} {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Before the end is used. Events go to the descriptor until detach().
  void attach(int end, Descriptor& descriptor);
  void detach(int end);

  // What a call has come to. Neither `done` nor an error: it has to wait.
  struct Outcome {
    std::size_t bytes = 0;
    bool done = false;
    std::error_code error{};
  };
  // At least one byte, or 0 at the end of the stream.
  Outcome read(int end, std::span<std::byte> into, bool takes = true);
  // Whether read() would not have to wait.
  [[nodiscard]] bool may_read(int end);
  // Done: all of it.
  Outcome write(int end, std::span<const std::byte> data);
  // The peer's stream ends. False: there is no connection any more.
  bool end_stream(int end);
  // May be repeated.
  void close(int end, bool aborts);
  [[nodiscard]] std::size_t unread(int end);
  void order(int end, Side side, const Fault& fault);

 private:
  struct End {
    explicit End(std::size_t buffer_bytes) : received(buffer_bytes) {}
    Ring received;
    Descriptor* descriptor = nullptr;  // null: nobody to tell
    std::uint64_t cookie = 0;
    bool ended = false;       // nothing will arrive behind what is received
    bool ended_peer = false;  // close_write() was called here
    bool reset = false;
    bool closed = false;
    std::array<std::optional<Fault>, 2> faults{};  // by Side
  };
  // Whom to tell what, when the lock is free again: waking takes locks of the scheduler. By then the descriptor may be
  // closed, and its memory in use for another one, which the cookie tells; a descriptor that is recycled between the
  // comparison and the wake-up has one spurious wake-up. The mark of a hang-up stays, and so is set at once.
  class News {
   public:
    News() = default;
    News(const News&) = delete;
    News& operator=(const News&) = delete;
    ~News();
    void add(const End& to, Descriptor::Events events);  // under the lock

   private:
    struct Item {
      Descriptor* descriptor;
      std::uint64_t cookie;
      Descriptor::Events events;
    };
    std::array<std::optional<Item>, 2> items_{};
  };

  void reset_locked(End& end, News& news) TUZA_REQUIRES(mutex_);
  [[nodiscard]] bool readable(const End& end) const TUZA_REQUIRES(mutex_);

  rt::RawMutex mutex_;
  std::array<End, 2> ends_ TUZA_GUARDED_BY(mutex_);
};

}  // namespace tuza::net::memory
