// The queue between the threads that log and the one thread that writes.
//
// A caller copies its line into the queue, under a lock that is held for that copy only, and never waits for the
// output. A line that finds the queue full is dropped and counted; the writing thread reports the count in a line of
// its own as soon as the output accepts lines again. The writing thread takes all queued lines at once, writes them,
// and then waits for 20 ms, or until the queue is half full. Under load this costs one system call per batch, instead
// of one system call and one wake-up per line. The first line after a pause is written at once.
//
// spdlog's own asynchronous logger is not used because it wakes its thread for each line, which on the machine we
// measure on costs more than answering a request.
//
// Thread-safe. Never destroyed while the process lives: a goroutine that was left behind at the end of tuza::run may
// still log at any time.
#pragma once

#include <tuza/framework/log/line.h>
#include <tuza/framework/log/output.h>
#include <tuza/sched/detail/thread_mutex.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace tuza::logging {

class LineQueue {
 public:
  static constexpr std::size_t kLineBytesMax = 64 << 10;  // longer lines are cut
  // The memory limit of the queue is this many bytes per line.
  static constexpr std::size_t kLineBytesMean = 512;

  // `dropped_total` counts the dropped lines of all queues.
  LineQueue(Output output, Form form, std::size_t lines_max, std::atomic<std::uint64_t>& dropped_total);
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // Starts the writing thread, which ends with stop(). Fails if no thread is available.
  Result<void> start();
  // Queues a line with its line end. False: the line was dropped. Neither parks nor waits for the output.
  bool push(std::string_view line);
  // Waits until all lines pushed before have been written, but not longer than `limit`; false if the limit was
  // reached. Blocks the thread.
  bool drain(std::chrono::milliseconds limit);
  // Ends the writing thread and waits for its end, but not longer than `limit`. The thread first writes the queued
  // lines, and waits for room in the output for most of `limit`. It counts the lost lines, and reports them if it can.
  // Blocks the thread.
  void stop(std::chrono::milliseconds limit);

  [[nodiscard]] Form form() const { return form_; }
  Result<void> reopen() { return output_.reopen(); }

 private:
  void work();
  void write(std::string& batch, std::uint64_t lines, std::uint64_t dropped);
  bool report(std::uint64_t dropped);
  bool end_sleep() TUZA_REQUIRES(mutex_);

  Output output_;
  const Form form_;
  const std::size_t lines_max_, bytes_max_;
  std::atomic<std::uint64_t>& dropped_total_;  // relaxed: for reports
  // The time at which the writing thread stops waiting for room in the output; the thread reads it while it waits.
  // Relaxed: no other data depends on it.
  std::atomic<std::int64_t> give_up_ns_{std::numeric_limits<std::int64_t>::max()};

  ThreadMutex mutex_;
  [[nodiscard]] bool half_full() const TUZA_REQUIRES(mutex_) {
    return lines_ > lines_max_ / 2 || text_.size() > bytes_max_ / 2;
  }
  std::condition_variable wake_;     // the writing thread waits here
  std::condition_variable written_;  // callers of drain() and stop() wait here
  std::string text_ TUZA_GUARDED_BY(mutex_);
  std::uint64_t lines_ TUZA_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ TUZA_GUARDED_BY(mutex_) = 0;  // since the last report
  bool asleep_ TUZA_GUARDED_BY(mutex_) = false;        // the thread waits for the first line
  bool busy_ TUZA_GUARDED_BY(mutex_) = false;  // the thread has taken lines and has not written all of them
  bool stopping_ TUZA_GUARDED_BY(mutex_) = false;
  bool ended_ TUZA_GUARDED_BY(mutex_) = false;

  // Accessed by the writing thread only.
  std::function<bool()> patient_;
  std::uint64_t lost_ = 0;  // lines taken, but not written by the output and not yet reported
};

}  // namespace tuza::logging
