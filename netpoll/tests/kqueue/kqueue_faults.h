// What the kqueue of the tests refuses, as other systems do, and what it counts. Thread-safe.
#pragma once

#include <functional>
#include <string_view>

namespace tuza::net::testing::kqueue_faults {

// Whether there is EVFILT_USER. For kqueues made from now on.
void has_user_events(bool yes);
// Changes so far whose filters are those of descriptors, also refused ones: the poller makes one with each call.
int changes();
// While it lives, calls of that kind ("kqueue", "change", "wait") fail with this errno: all of them, or only the one of that
// number, beginning with 1.
class Refuse {
 public:
  Refuse(std::string_view call, int error, int only = 0);
  ~Refuse();
  Refuse(const Refuse&) = delete;
  Refuse& operator=(const Refuse&) = delete;

 private:
  const std::string_view call_;
};

// While it lives, `call` is called in front of each change, on the thread that makes it. One at a time.
class BeforeChange {
 public:
  explicit BeforeChange(std::function<void()> call);
  ~BeforeChange();
  BeforeChange(const BeforeChange&) = delete;
  BeforeChange& operator=(const BeforeChange&) = delete;

 private:
  const std::function<void()> call_;
};

}  // namespace tuza::net::testing::kqueue_faults
