// A pipe through which splice(2) moves bytes from one socket to another: they never enter the process.
//
// A pipe costs two descriptors, and making one costs more than splicing a little. So a few are kept for the next user, and
// pipes in use never take more than a quarter of the descriptors that the process may have: there is none beyond that, and
// none while the kernel refuses it. Whoever gets none copies instead.
//
// One that ends with bytes in it is closed, so that nobody else gets them. The kept ones belong to one runtime: another
// one, which may be in a forked child, closes them. They are empty.
//
// Not thread-safe; take() and the destructor may be called anywhere inside tuza::run. Does not park.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tuza::net {

class SplicePipe {
 public:
  // Kept while nobody uses them.
  static constexpr std::size_t kKeptMax = 16;

  // Whether this system has splice(2).
#if !defined(TUZA_PORTABLE)
  static constexpr bool kAvailable = true;
#else
  static constexpr bool kAvailable = false;
#endif

  // An empty pipe, or an object that has none.
  [[nodiscard]] static SplicePipe take();
  SplicePipe(SplicePipe&& other) noexcept
      : ends_(std::exchange(other.ends_, {})), bytes_(std::exchange(other.bytes_, 0)) {}
  SplicePipe& operator=(SplicePipe&&) = delete;
  ~SplicePipe();

  explicit operator bool() const { return ends_.write >= 0; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // Moves up to `most` bytes from a socket into the empty pipe, or from the pipe into a socket. The number of bytes, or
  // -errno; -EAGAIN is about the socket. Does not wait.
  long fill_from(int socket, std::size_t most);
  long drain_to(int socket);

  // Pipes that are open, the kept ones included: for tests.
  [[nodiscard]] static std::size_t open_pipes();

 private:
  struct Ends {
    int read = -1, write = -1;
  };
  struct Kept;
  static void close(Ends ends);
  explicit SplicePipe(Ends ends) : ends_(ends) {}

  Ends ends_;
  std::size_t bytes_ = 0;
};

}  // namespace tuza::net
