// The start and the end of a goroutine that belongs to a group, or whose result belongs to a Future.
#pragma once

#include <tuza/sched/detail/spawn.h>
#include <tuza/sched/sync/detail/destroy_locals.h>

#include <source_location>
#include <utility>

namespace tuza::rt {

// Starts the goroutine of group.go(options, function, arguments...), for FunctionOf.
template <class Group>
struct MemberStarter {
  using Started = void;
  template <class F, class... Args>
  static constexpr bool fits() {
    return Group::template fits<F, Args...>();
  }
  template <class F, class... Args>
  void start(const std::source_location& where, F&& function, Args&&... args) const {
    group.start(options, where, std::forward<F>(function), std::forward<Args>(args)...);
  }

  Group& group;
  const GoOptions& options;
};
template <class Group, class... Args>
using MemberFunction = FunctionOf<const MemberStarter<Group>, Args...>;

// The first object on the stack of such a goroutine. When everything else there is destroyed, it destroys the
// goroutine-locals, and tells the group (or the Future): a local may refer to what the waiter then destroys.
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
