// The queue between those who log and the one thread that writes.
//
// Whoever logs copies a line into it, under a lock that is held for that copy only, and never waits for the
// output. A line that finds the queue full is dropped and counted; the thread says how many, as a line of its
// own, as soon as it gets through again. The thread takes everything there is at once, writes it, and then
// lets 20 ms pass, unless half of the queue is full before: under load it costs a system call per batch
// rather than one, and a wake-up, per line. The first line after a pause goes out at once.
//
// Why not spdlog's own asynchronous logger: it wakes its thread for each line, which on the machine we
// measure on costs more than answering a request.
//
// Thread-safe. Never destroyed while the process lives: what a goroutine does that was left behind at the end
// of tuza::run is nobody's to know.
#pragma once

#include <tuza/framework/log/line.h>
#include <tuza/framework/log/output.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>

namespace tuza::logging {

class LineQueue {
 public:
  static constexpr std::size_t kLineBytesMax = 64 << 10;  // longer ones are cut
  // The text of a full queue: so many bytes per line.
  static constexpr std::size_t kLineBytesMean = 512;

  // `dropped_total` counts the lines that are dropped, of all queues.
  LineQueue(Output output, Form form, std::size_t lines_max, std::atomic<std::uint64_t>& dropped_total);
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // Starts the thread, which ends with stop(). An error: there is none to be had.
  Result<void> start();
  // Takes a line with its line end. False: it was dropped. Neither parks nor waits for the output.
  bool push(std::string_view line);
  // Waits until everything has been written that was pushed before; not longer than `limit`. Blocks the
  // thread.
  bool drain(std::chrono::milliseconds limit);
  // Writes what there is room for, and for most of `limit` waits for room; then the thread ends, and has
  // counted and, if it could, reported what was lost. Waits for that, but not longer than `limit`. Blocks.
  void stop(std::chrono::milliseconds limit);

  [[nodiscard]] Form form() const { return form_; }
  Result<void> reopen() { return output_.reopen(); }

 private:
  void work();
  void write(std::string& batch, std::uint64_t lines, std::uint64_t dropped);
  bool report(std::uint64_t dropped);

  Output output_;
  const Form form_;
  const std::size_t lines_max_, bytes_max_;
  std::atomic<std::uint64_t>& dropped_total_;  // relaxed: for reports
  // When the thread stops waiting for room; it reads that while it waits. Relaxed: it is all there is to it.
  std::atomic<std::int64_t> give_up_ns_{std::numeric_limits<std::int64_t>::max()};

  std::mutex mutex_;
  [[nodiscard]] bool half_full() const { return lines_ > lines_max_ / 2 || text_.size() > bytes_max_ / 2; }
  std::condition_variable wake_;     // of the thread
  std::condition_variable written_;  // of those who drain
  // Guarded by mutex_.
  std::string text_;
  std::uint64_t lines_ = 0;
  std::uint64_t dropped_ = 0;  // since the last report
  bool asleep_ = false;        // the thread waits for a first line
  bool busy_ = false;          // the thread has taken lines and not written all of them
  bool stopping_ = false;
  bool ended_ = false;

  // The thread's own.
  std::function<bool()> patient_;
  std::uint64_t lost_ = 0;  // lines taken, but refused by the output and not reported
};

}  // namespace tuza::logging
