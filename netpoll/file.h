// Public header, part of <tuza/net.h>.
//
// Files: blocking calls that keep nobody else waiting.
//
//     tuza::Result<void> note(std::string_view line) {
//       auto log = tuza::File::open("visits.log", {.read = false, .append = true, .create = true});
//       if (!log) return std::unexpected(log.error());         // "open visits.log: Permission denied"
//       if (auto written = log->write_all(line); !written) return written;
//       return log->close();
//     }
//
// What blocks: unlike a socket, a file cannot be waited for; the kernel keeps the thread until the disk, the
// terminal or the other end of the pipe has answered. Each system call is therefore a BlockingCall
// (sched/blocking.h): the goroutine and its thread wait; the P runs others if that takes long. Every function
// here but path() parks, the destructor included. On a thread that is no goroutine they work too, and block
// it; only read(), read_all() and write_all() must not meet others of their kind on the same file there.
//
// Ownership: a File owns its descriptor, closes it when it is destroyed, and does not pass it on to programs
// that are started (O_CLOEXEC). It can be moved while nobody uses it. One that was closed, moved from or made
// by File() returns Errc::kClosed from every call.
//
// Thread-safe: any goroutine may call any function at any time. Calls of read() and read_all() exclude each
// other, and so do those of write_all(), so that none is torn apart by another. The rest overlaps, pread()
// and pwrite_all() above all. close() may be called while others use the file: the system calls that have
// begun go on to their end, and the last of them gives the number back, so that none gets at another file
// that has the number next. Nothing interrupts a read that waits for a pipe or a terminal, close() neither.
// What must not happen is destruction during a call.
//
// Any kind of file may be opened: pipes, terminals, what is in /proc. Directories can be opened for stat()
// and sync() only; Directory lists them (netpoll/directory.h).
//
// Errors are values: Errc::kClosed, or what the system says, with operation and path. There is no SIGPIPE.
#pragma once

#include <tuza/netpoll/file_info.h>
#include <tuza/sched/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tuza {

struct OpenOptions {
  bool read = true;
  bool write = false;
  bool append = false;     // all that is written goes to the end as it is by then; implies write
  bool create = false;     // if it is not there
  bool truncate = false;   // to nothing; with write only
  bool exclusive = false;  // it must not be there (EEXIST): one of several that try makes it; implies create
  std::uint32_t mode = 0666;  // permissions of a file that is created, less the umask
};

class File {
 public:
  // Opens what is there, for reading unless `options` say otherwise. EINVAL for options that contradict each
  // other. A FIFO is open when its other end is: until then the call waits.
  static Result<File> open(std::string_view path, const OpenOptions& options = {});
  // A new, empty file for reading and writing; one that is there loses what it contains.
  static Result<File> create(std::string_view path, std::uint32_t mode = 0666);

  File();  // as if closed
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  // From the position on, which moves. Waits for at least one byte; returns how many came, 0 at the end.
  // Fewer than asked for mean nothing.
  Result<std::size_t> read(std::span<std::byte> into);
  Result<std::size_t> read(std::span<char> into) { return read(std::as_writable_bytes(into)); }

  // From the position to the end. EFBIG if that is more than `bytes_max`; what was read is lost then.
  static constexpr std::size_t kReadAllBytesMax = std::size_t{16} << 20;
  Result<std::string> read_all(std::size_t bytes_max = kReadAllBytesMax);

  // All of `data`, at the position, which moves, or at the end (OpenOptions::append). On an error some of it
  // may have been written (ENOSPC, when the disk fills up): the message says how much, "write a.log (512 of
  // 800 bytes written): No space left on device", and the position has moved by that. Written is not stored:
  // sync().
  Result<void> write_all(std::span<const std::byte> data);
  Result<void> write_all(std::string_view text) { return write_all(std::as_bytes(std::span(text))); }

  // From `offset` on, in bytes from the beginning; the position is neither used nor moved. Fills `into`:
  // fewer bytes come only if the file ends before, or if an error follows, which the next call will report.
  // ESPIPE for what has no positions: pipes, terminals.
  Result<std::size_t> pread(std::span<std::byte> into, std::uint64_t offset);
  Result<std::size_t> pread(std::span<char> into, std::uint64_t offset) {
    return pread(std::as_writable_bytes(into), offset);
  }
  // All of `data` to `offset`, errors as in write_all(). A hole before it reads as zeros. With
  // OpenOptions::append Linux writes at the end all the same.
  Result<void> pwrite_all(std::span<const std::byte> data, std::uint64_t offset);
  Result<void> pwrite_all(std::string_view text, std::uint64_t offset) {
    return pwrite_all(std::as_bytes(std::span(text)), offset);
  }

  // Moves the position; returns the new one, in bytes from the beginning. seek(0, Whence::kCurrent) asks.
  enum class Whence : std::uint8_t { kBegin, kCurrent, kEnd };
  Result<std::uint64_t> seek(std::int64_t offset_bytes, Whence whence = Whence::kBegin);

  // Cuts off, or adds zeros. The position stays.
  Result<void> truncate(std::uint64_t size_bytes);

  // Returns when all that was written is stored so that a power failure does not lose it: milliseconds, on a
  // disk. An error may concern any earlier write, and is reported once. The name of a new file is stored by
  // sync() of its directory.
  Result<void> sync();
  // The same without times and permissions; with the size. Often cheaper.
  Result<void> sync_data();

  Result<FileInfo> stat();

  // The error is what the system has kept back until now (NFS, quotas); the file is closed all the same, and
  // the call must not be repeated. While others use the file the last of them closes it, and the error is
  // lost. Errc::kClosed if it was closed before. The destructor closes too, and says nothing.
  Result<void> close();

  // As it was given to open(); empty for File().
  [[nodiscard]] std::string_view path() const;

 private:
  struct State;
  struct Dispose {
    void operator()(State* state) const;
  };
  class Use;
  explicit File(std::unique_ptr<State, Dispose> state);
  [[nodiscard]] Error closed_error(std::string_view op) const;

  std::unique_ptr<State, Dispose> state_;
};

}  // namespace tuza
