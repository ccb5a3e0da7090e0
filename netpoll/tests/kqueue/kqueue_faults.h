// What the kqueue of the tests refuses, as other systems do. Thread-safe.
#pragma once

#include <string_view>

namespace tuza::net::testing::kqueue_faults {

// Whether there is EVFILT_USER. For kqueues made from now on.
void has_user_events(bool yes);
// While it lives, calls of that kind ("kqueue", "change", "wait") fail with this errno.
class Refuse {
 public:
  Refuse(std::string_view call, int error);
  ~Refuse();
  Refuse(const Refuse&) = delete;
  Refuse& operator=(const Refuse&) = delete;

 private:
  const std::string_view call_;
};

}  // namespace tuza::net::testing::kqueue_faults
