// One wait of a goroutine for something that another library completes: the part of the Asio bridge that
// knows no Asio.
//
// The goroutine waits at most twice: until the completion or the end of a context, and if the context was
// first, until the completion, for the operation still uses the goroutine's stack. So there are two Waits
// (sched/sync/detail/wait.h), and one word of the first decides:
//
//     completer                                    goroutine
//     first.claim()? yes: first.wake()             first.block(context) says "served": it goes on
//                    no:  second.wake()            says "ended": asks for cancellation, second.block()
//
// claim() has one winner, the completer or the end of the context. If the completer wins, the goroutine
// cannot see the end, and wake() is the completer's last access. If it loses, the goroutine will wait for the
// second one, so both are there until the completer's last access, second.wake(). A Wait may be woken before
// it blocks, so a completion before the park, or in the middle of the initiation, is nothing special.
//
// complete() is called exactly once, by any thread; what it did before is visible after await().
#pragma once

#include <tuza/sched/external.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/wait.h>

#include <system_error>

namespace tuza::detail {

class AsioWait {
 public:
  // Ends the process on a thread that is not a goroutine, and in the middle of an Asio handler: parking there
  // would leave with Asio's stack of calls, which belongs to the thread.
  AsioWait();

  // The last access of the completer. Does not park.
  void complete();

  // Waits for complete(). Parks.
  void await();
  // The same; false if `ctx` ended first, and then await() follows. Parks.
  [[nodiscard]] bool await(const Context& ctx);

 private:
  const ExternalWaker promise_;  // that the goroutine is not deadlocked
  rt::Wait first_;
  rt::Wait second_;
  // In no queue: Asio has their addresses, and keeps them whatever becomes of the goroutine.
  rt::Waiter first_place_{first_, nullptr, nullptr};
  rt::Waiter second_place_{second_, nullptr, nullptr};
  bool context_ended_ = false;  // the goroutine's
};

// Asio has a category of its own for the system's errors; ours is the standard's, so that
// error.is(std::errc::...) says the same wherever it came from.
std::error_code standard_code(std::error_code from_asio);

}  // namespace tuza::detail
