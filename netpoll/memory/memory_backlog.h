// The connections that wait to be accepted by one listener in memory.
//
// As that of the kernel, but without a limit: dialling never waits. Thread-safe.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/backlog.h>
#include <tuza/sched/rt/base/raw_mutex.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <system_error>

namespace tuza::net::memory {

class MemoryBacklog final : public Backlog {
 public:
  // Waiting accepts are told through `descriptor`, which is the listener's and in memory.
  explicit MemoryBacklog(Descriptor& descriptor) : descriptor_(descriptor), cookie_(descriptor.cookie()) {}
  ~MemoryBacklog() override { close(); }

  // False: it is closed.
  [[nodiscard]] bool add(Conn conn);
  // The next accepts fail.
  void fail(std::error_code code, int times);

  Result<Conn> accept(Descriptor& descriptor, const Context* ctx) override;
  void drop_one() override;
  void close() override;

 private:
  Descriptor& descriptor_;  // perhaps no longer the listener's, which the cookie tells
  const std::uint64_t cookie_;
  rt::RawMutex mutex_;
  std::list<Conn> waiting_ TUZA_GUARDED_BY(mutex_);
  std::error_code failure_ TUZA_GUARDED_BY(mutex_);
  int failures_left_ TUZA_GUARDED_BY(mutex_) = 0;
  bool closed_ TUZA_GUARDED_BY(mutex_) = false;
};

}  // namespace tuza::net::memory
