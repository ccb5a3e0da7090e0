// The end of a goroutine that belongs to a group.
#pragma once

#include <tuza/sched/sync/detail/destroy_locals.h>

namespace tuza::rt {

// The first object on the stack of such a goroutine. When everything else there is destroyed, it destroys the
// goroutine-locals, and tells the group: a local may refer to what the waiter for the group then destroys.
template <class Group, void (Group::*kEnded)()>
class MemberEnd {
 public:
  explicit MemberEnd(Group& group) : group_(group) {}
  ~MemberEnd() {
    destroy_locals();
    (group_.*kEnded)();
  }
  MemberEnd(const MemberEnd&) = delete;
  MemberEnd& operator=(const MemberEnd&) = delete;

 private:
  Group& group_;
};

// The same for a goroutine that was not started, because the function could not be copied.
template <class Group, void (Group::*kEnded)()>
class UnlessStarted {
 public:
  explicit UnlessStarted(Group& group) : group_(&group) {}
  ~UnlessStarted() {
    if (group_ != nullptr) (group_->*kEnded)();
  }
  UnlessStarted(const UnlessStarted&) = delete;
  UnlessStarted& operator=(const UnlessStarted&) = delete;
  void started() { group_ = nullptr; }

 private:
  Group* group_;
};

}  // namespace tuza::rt
