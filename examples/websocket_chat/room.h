// The room of the chat: who is here, and who is sent what.
//
// Nobody waits for a guest: each has a queue of a fixed length, and a guest whose queue is full reads too slowly, and is
// removed. Thread-safe.
#pragma once

#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace websocket_chat {

using Line = std::shared_ptr<const std::string>;

// Lives on the stack of its handler, from join() to leave().
struct Guest {
  static constexpr std::size_t kQueueLines = 64;

  explicit Guest(std::string its_name) : name(std::move(its_name)) {}
  const std::string name;
  tuza::Chan<Line> queue{kQueueLines};
  // Ends when the guest is removed, or leaves.
  tuza::CancellableContext stay = tuza::with_cancel(tuza::Context::background());
};

class Room {
 public:
  void join(Guest& guest) {
    const std::scoped_lock lock(mutex_);
    guests_.push_back(&guest);
    tell_all("* " + guest.name + " joins, " + std::to_string(guests_.size()) + " here");
  }
  void leave(Guest& guest) {
    const std::scoped_lock lock(mutex_);
    std::erase(guests_, &guest);  // unless it was removed before
    tell_all("* " + guest.name + " leaves");
  }
  void say(const Guest& guest, std::string_view text) {
    const std::scoped_lock lock(mutex_);
    tell_all(guest.name + ": " + std::string(text));
  }

 private:
  // Under mutex_. Does not park.
  void tell_all(std::string text) {
    const Line line = std::make_shared<const std::string>(std::move(text));
    std::erase_if(guests_, [&line](Guest* guest) {
      const bool slow = !guest->queue.try_send(line);
      if (slow) guest->stay.cancel();
      return slow;
    });
  }

  tuza::Mutex mutex_;
  std::vector<Guest*> guests_;
};

}  // namespace websocket_chat
