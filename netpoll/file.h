// Public header, part of <tuza/net.h>.
//
// File I/O: blocking calls that do not delay other goroutines.
//
//     tuza::Result<void> note(std::string_view line) {
//       auto log = tuza::File::open("visits.log", {.read = false, .append = true, .create = true});
//       if (!log) return std::unexpected(log.error());         // "open visits.log: Permission denied"
//       if (auto written = log->write_all(line); !written) return written;
//       return log->close();
//     }
//
// Blocking: unlike a socket, a file cannot be polled; the kernel blocks the thread until the disk, the
// terminal or the other end of the pipe has answered. Each system call is therefore a BlockingCall
// (sched/blocking.h): the goroutine and its thread wait; if the call takes long, the P runs other goroutines.
// Every function here except path() parks, the destructor included. On a thread that is not a goroutine the
// functions work too, and block the thread; there, two calls of read() or read_all() on the same file must
// not overlap, nor two calls of write_all().
//
// Ownership: a File owns its descriptor and closes it on destruction. Child programs do not inherit the
// descriptor (O_CLOEXEC). A File can be moved while no call uses it. A File that was closed, moved from, or
// made by File() returns Errc::kClosed from every call.
//
// Thread-safe: any goroutine may call any function at any time. Calls of read() and read_all() exclude each
// other, and so do calls of write_all(), so that none is interleaved with another. All other calls overlap,
// in particular pread() and pwrite_all(). close() may be called while other goroutines use the file: system
// calls that have begun run to completion, and the last of them releases the descriptor number, so that none
// reaches another file that gets the same number later. Nothing interrupts a read that waits for a pipe or a
// terminal, not even close(). Destroying the File during a call is not allowed.
//
// Any kind of file may be opened: pipes, terminals, files in /proc. Directories can be opened for stat() and
// sync() only; Directory lists them (netpoll/directory.h).
//
// Errors are values: Errc::kClosed, or the system's error, with operation and path. SIGPIPE is never raised.
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
  bool append = false;     // every write goes to the current end of the file; implies write
  bool create = false;     // if the file does not exist
  bool truncate = false;   // to zero length; requires write
  bool exclusive = false;  // the file must not exist (EEXIST): exactly one creator succeeds; implies create
  std::uint32_t mode = 0666;  // permissions of a new file, less the umask
};

class File {
 public:
  // Opens an existing file, for reading unless `options` say otherwise. EINVAL for contradictory options.
  // Opening a FIFO waits until its other end is open.
  [[nodiscard]] static Result<File> open(std::string_view path, const OpenOptions& options = {});
  // A new, empty file for reading and writing; an existing file is truncated.
  [[nodiscard]] static Result<File> create(std::string_view path, std::uint32_t mode = 0666);

  // Takes over an open descriptor, from standard input to an inherited socket, which has no path that could be opened.
  // `name` stands in errors and in path(). Owns the descriptor from then on, even on an error; for a descriptor that must
  // stay open, pass dup(fd). Of a descriptor that does not block, calls wait until it is ready. Child programs inherit it
  // if they did before. EBADF if it is not open.
  [[nodiscard]] static Result<File> adopt(int fd, std::string_view name);

  File();  // same state as a closed File
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  // Reads from the current position and advances it. Waits for at least one byte; returns the number of bytes
  // read, 0 at the end of the file. A short count has no meaning.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> read(std::span<char> into) { return read(std::as_writable_bytes(into)); }

  // Reads from the position to the end. EFBIG if more than `bytes_max` remain; the bytes read so far are then
  // lost.
  static constexpr std::size_t kReadAllBytesMax = std::size_t{16} << 20;
  [[nodiscard]] Result<std::string> read_all(std::size_t bytes_max = kReadAllBytesMax);

  // Writes all of `data` at the position, which advances, or at the end (OpenOptions::append). On an error a
  // part may have been written (ENOSPC, when the disk is full): the message says how much, "write a.log (512
  // of 800 bytes written): No space left on device", and the position has advanced by that amount. Written
  // data is not yet durable: see sync().
  [[nodiscard]] Result<void> write_all(std::span<const std::byte> data);
  [[nodiscard]] Result<void> write_all(std::string_view text) {
    return write_all(std::as_bytes(std::span(text)));
  }

  // Reads from `offset`, in bytes from the beginning; the position is neither used nor moved. Fills `into`:
  // the count is short only if the file ends first, or if an error follows, which the next call will report.
  // ESPIPE for files without positions: pipes, terminals.
  [[nodiscard]] Result<std::size_t> pread(std::span<std::byte> into, std::uint64_t offset);
  [[nodiscard]] Result<std::size_t> pread(std::span<char> into, std::uint64_t offset) {
    return pread(std::as_writable_bytes(into), offset);
  }
  // Writes all of `data` at `offset`; errors as in write_all(). A gap before `offset` reads as zeros. With
  // OpenOptions::append Linux ignores `offset` and writes at the end.
  [[nodiscard]] Result<void> pwrite_all(std::span<const std::byte> data, std::uint64_t offset);
  [[nodiscard]] Result<void> pwrite_all(std::string_view text, std::uint64_t offset) {
    return pwrite_all(std::as_bytes(std::span(text)), offset);
  }

  // Moves the position; returns the new one, in bytes from the beginning. seek(0, Whence::kCurrent) queries
  // it.
  enum class Whence : std::uint8_t { kBegin, kCurrent, kEnd };
  [[nodiscard]] Result<std::uint64_t> seek(std::int64_t offset_bytes, Whence whence = Whence::kBegin);

  // Shortens the file, or extends it with zeros. The position stays.
  [[nodiscard]] Result<void> truncate(std::uint64_t size_bytes);

  // Returns when all written data would survive a power failure: milliseconds, on a disk. An error may
  // concern any earlier write, and is reported once. To make the name of a new file durable, call sync() on
  // its directory.
  [[nodiscard]] Result<void> sync();
  // Like sync(), without times and permissions, but with the size. Often cheaper.
  [[nodiscard]] Result<void> sync_data();

  [[nodiscard]] Result<FileInfo> stat();

  // A returned error is one the system has deferred until now (NFS, quotas); the file is closed all the same,
  // and the call must not be repeated. If other goroutines are using the file, the last of them closes it,
  // and the error is lost. Errc::kClosed if the file was closed before. The destructor also closes the file,
  // and ignores errors.
  [[nodiscard]] Result<void> close();

  // The path given to open(), or the name given to adopt(); empty for File().
  [[nodiscard]] std::string_view path() const;

  // The descriptor, for system calls that File does not have. It stays open for as long as the object exists, even if
  // close() is called meanwhile. The destructor parks.
  class Number;

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

class File::Number {
 public:
  explicit Number(const File& file);
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  ~Number();
  // -1 if the file was closed before.
  [[nodiscard]] int fd() const;

 private:
  State* state_;
};

}  // namespace tuza
