// A goroutine's wait for a completion by another library: the part of the Asio bridge that does not depend on Asio.
//
// The goroutine waits at most twice. It first waits for the completion or the end of a context. If the context ends
// first, it then waits for the completion, because the operation still uses the goroutine's stack. So there are two
// Waits (sched/sync/detail/wait.h), and one word of the first decides:
//
//     completer                                    goroutine
//     first.claim()? yes: first.wake()             first.block(context) says "served": continues
//                    no:  second.wake()            says "ended": requests cancellation, second.block()
//
// claim() has one winner: the completer or the end of the context. If the completer wins, the goroutine cannot observe
// the end of the context, and first.wake() is the completer's last access. If the completer loses, the goroutine will
// wait on the second Wait, so both Waits exist until the completer's last access, second.wake(). A Wait may be woken
// before it blocks, so a completion before the park, or during the initiation, is no special case.
//
// Exactly one thread, which may be any, calls complete(), exactly once. Everything that the thread did before is
// visible after await().
#pragma once

#include <tuza/sched/external.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/wait.h>

namespace tuza::detail {

class AsioWait {
 public:
  // Terminates the process on a thread that is not a goroutine, and inside an Asio handler: parking there would switch
  // away with Asio's call stack, which belongs to the thread.
  explicit AsioWait(bool inside_handler);

  // Must be the last access of the completer. Does not park.
  void complete();

  // Waits for complete(). Parks.
  void await();
  // The same with a context. False: `ctx` ended first, and the caller must call await() next. Parks.
  [[nodiscard]] bool await(const Context& ctx);

 private:
  const ExternalWaker promise_;  // tells the runtime that the goroutine is not deadlocked
  rt::Wait first_;
  rt::Wait second_;
  // These are in no queue: Asio holds their addresses, and keeps them whatever happens to the goroutine.
  rt::Waiter first_place_{first_, nullptr, nullptr};
  rt::Waiter second_place_{second_, nullptr, nullptr};
  bool context_ended_ = false;  // accessed by the goroutine only
};

}  // namespace tuza::detail
