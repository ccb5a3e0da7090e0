// The output of the log: a file, or a descriptor whose reader may have stalled.
//
// Thread-compatible: one thread writes; another may call reopen() at the same time.
#pragma once

#include <tuza/sched/result.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tuza::logging {

class Output {
 public:
  // Writes to `fd`, which remains the property of the caller.
  explicit Output(int fd);
  // Opens a file to append to; creates it if it does not exist. A FIFO without a reader is an error as well.
  static Result<Output> open(const std::string& path);
  // The error that open() would return now, without making the file.
  static Result<void> may_open(const std::string& path);
  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  // Writes lines and returns the number of bytes written, which is smaller if the disk is full or the reader has
  // stalled. While there is no room, calls `patient` before each wait of 100 ms, and gives up if it returns false. If
  // a line was cut off, the next write ends that line first. Blocks the thread.
  std::size_t write(std::string_view lines, const std::function<bool()>& patient);

  // Opens the file again under its name; a file that was moved away is left as it is. On an error the old file stays
  // in use. Does nothing for a descriptor. May block on the file system.
  Result<void> reopen();

 private:
  Output(int fd, std::string path);
  bool wait_for_room(const std::function<bool()>& patient) const;
  [[nodiscard]] std::string_view piece_of(std::string_view lines) const;

  int fd_;
  std::string path_;             // empty: the descriptor is not ours
  std::atomic<bool> in_pieces_;  // not a regular file; relaxed: may describe the descriptor before reopen()
  bool cut_off_ = false;         // the last write ended within a line
  std::atomic<bool> reopened_{false};  // another file is open now, so cut_off_ no longer applies
};

// Writes `text` to a descriptor whose reader may have stalled. Waits for room at most `tries` times 100 ms, and
// decrements `tries` for each wait. False: not all of the text was written. Blocks the thread.
bool write_patiently(int fd, std::string_view text, int& tries);

}  // namespace tuza::logging
