// Counts the open connections of each client address, up to a limit. An IPv6 client has a network of 64 bits at least, and
// so counts as that network.
//
// Thread-safe. Parks while another goroutine counts.
#pragma once

#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/sync/mutex.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tuza::net {

class AddressCounts {
 public:
  // `most`: connections of one address; 0: no limit, and nothing is counted.
  explicit AddressCounts(std::size_t most) : most_(most) {}

  // A connection that counts, for as long as this object lives; at most as long as the AddressCounts.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept : counts_(std::exchange(other.counts_, nullptr)), key_(other.key_) {}
    Held& operator=(Held&& other) noexcept {
      std::swap(counts_, other.counts_);
      std::swap(key_, other.key_);
      return *this;
    }
    ~Held() {
      if (counts_ != nullptr) counts_->release(key_);
    }

   private:
    friend class AddressCounts;
    Held(AddressCounts& counts, std::uint64_t key) : counts_(&counts), key_(key) {}
    AddressCounts* counts_ = nullptr;
    std::uint64_t key_ = 0;
  };

  // nullopt: the address has as many connections as it may.
  [[nodiscard]] std::optional<Held> try_hold(const Endpoint& client);
  // Forgets connections whose goroutines have ended with their runtime.
  void clear();

 private:
  void release(std::uint64_t key);

  const std::size_t most_;
  Mutex mutex_;
  std::unordered_map<std::uint64_t, std::size_t> open_ TUZA_GUARDED_BY(mutex_);
};

}  // namespace tuza::net
