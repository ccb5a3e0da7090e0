// Opens files below a folder, and nowhere else.
//
// Uses openat2(2) with RESOLVE_BENEATH: the kernel follows symbolic links as long as they stay below the
// folder, and refuses links that leave it, absolute ones included, whatever other processes do to the tree
// meanwhile. Where that call is unavailable (a kernel before 5.6, a seccomp filter, such as systemd's for
// RestrictSUIDSGID; another system), the path is walked folder by folder with the same result (open_by_steps.cpp).
//
// Thread-safe. Every function parks: the calls are blocking calls (netpoll/file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

struct stat;

namespace tuza::http {

// Owns an open descriptor.
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
  // The caller owns it from then on.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  // 0 or -errno.
  [[nodiscard]] long stat(struct stat& into) const;
  // Fills `into` from `offset` on; returns fewer bytes at the end of the file. -errno on an error before the
  // first byte.
  [[nodiscard]] long pread(std::span<char> into, std::uint64_t offset) const;

 private:
  int fd_ = -1;
};

// Opens a folder for open_beneath(): a descriptor, or -errno.
long open_folder(const std::string& path);

// Opens `path`, which must not begin with a slash, below `folder` for reading. Neither waits for the other
// end of a FIFO nor makes a terminal the controlling terminal. `flags`: more of open(2), O_DIRECTORY. Returns a
// descriptor, or -errno: EXDEV or ELOOP for a path that leaves the folder.
long open_beneath(int folder, const std::string& path, int flags = 0);
// Looks at it, without opening it, so that it need not be readable. 0, or the same errors.
long stat_beneath(int folder, const std::string& path, struct stat& into);
// The fall-backs, separate for tests.
long open_beneath_by_steps(int folder, const std::string& path, int flags = 0);
long stat_beneath_by_steps(int folder, const std::string& path, struct stat& into);
// What files are opened with.
extern const int kOpenBeneathFlags;

}  // namespace tuza::http
