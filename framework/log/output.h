// Where log lines leave the process: a descriptor that others may have stopped reading, or a file.
//
// Thread-compatible: one thread writes; reopen() may be called beside it.
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
  // A descriptor that stays its owner's.
  explicit Output(int fd);
  // A file to append to, made if it is not there. An error, too: a FIFO that nobody reads.
  static Result<Output> open(const std::string& path);
  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  // Writes lines and returns how many bytes of them are out: fewer if the disk is full or nobody reads any
  // more. Before each 100 ms that it waits for room `patient` is asked whether to go on. A line that is cut
  // off ends before the next one begins. Blocks the thread.
  std::size_t write(std::string_view lines, const std::function<bool()>& patient);

  // Opens the file of that name once more: what was moved away is left to whoever moved it. If that fails,
  // the old one stays. Nothing to do for a descriptor. May block on the file system.
  Result<void> reopen();

 private:
  Output(int fd, std::string path);
  bool wait_for_room(const std::function<bool()>& patient) const;
  [[nodiscard]] std::string_view piece_of(std::string_view lines) const;

  int fd_;
  std::string path_;             // empty: the descriptor is not ours
  std::atomic<bool> in_pieces_;  // it is no regular file; relaxed: of the descriptor before or after reopen()
  bool cut_off_ = false;         // what was written last is the beginning of a line
  std::atomic<bool> reopened_{false};  // and the new file begins with a line of its own
};

// Writes `text` to a descriptor that others may have stopped reading, and waits for them `tries` times 100 ms
// at most, which it takes off. False: not all of it is out. Blocks the thread.
bool write_patiently(int fd, std::string_view text, int& tries);

}  // namespace tuza::logging
