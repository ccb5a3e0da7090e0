// Listening on Unix-domain sockets, including removal of the socket file.
#pragma once

#include <sys/types.h>
#include <tuza/netpoll/listener.h>

#include <atomic>
#include <string>
#include <string_view>

namespace tuza::net {

// The file of a listening socket: removed once, and only while it is still the same file.
// Thread-safe.
class UnixSocketFile {
 public:
  explicit UnixSocketFile(std::string path);
  ~UnixSocketFile() { remove(); }
  UnixSocketFile(const UnixSocketFile&) = delete;
  UnixSocketFile& operator=(const UnixSocketFile&) = delete;

  void remove();

 private:
  const std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::atomic<bool> removed_{false};
};

// listen(ctx, "unix", path). Goroutines only.
Result<Listener> listen_unix(const Context& ctx, std::string_view path, int backlog);

}  // namespace tuza::net
