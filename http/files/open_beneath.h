// Opening a file below a folder, and nowhere else.
//
// openat2(2) with RESOLVE_BENEATH: the kernel follows symbolic links as long as they stay below the folder,
// and refuses those that leave it, absolute ones among them, whatever others do to the tree meanwhile. Where
// that call is not there (a kernel before 5.6, a seccomp filter that does not know it) the path is walked
// folder by folder, and no link is followed at all.
//
// Thread-safe. Everything parks: the calls are blocking calls (netpoll/file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

struct stat;

namespace tuza::http {

// An open descriptor.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OpenFile();
  [[nodiscard]] int fd() const { return fd_; }

  // 0 or -errno.
  [[nodiscard]] long stat(struct stat& into) const;
  // Fills `into` from `offset` on; fewer bytes at the end of the file. -errno if there were none.
  [[nodiscard]] long pread(std::span<char> into, std::uint64_t offset) const;

 private:
  int fd_ = -1;
};

// A folder to open files below: a descriptor, or -errno.
long open_folder(const std::string& path);

// Opens `path`, which does not begin with a slash, below `folder` for reading. It neither waits for the other
// end of a FIFO nor makes a terminal the process's own. -errno: EXDEV or ELOOP for one that leads elsewhere.
long open_beneath(int folder, const std::string& path);
// The fall-back, by itself for its tests.
long open_beneath_by_steps(int folder, const std::string& path);

}  // namespace tuza::http
