#include <tuza/http/middleware/stack_size.h>

#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/detail/caught.h>
#include <tuza/sched/sync/detail/member.h>
#include <tuza/sched/sync/wait_group.h>

#include <exception>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

void call_on_stack(std::size_t bytes, const Handler& next, Request& request, ResponseWriter& response) {
  std::exception_ptr thrown;
  bool returned = false;
  WaitGroup running;
  running.add(1);
  const GoOptions options{.name = "handler", .stack_bytes = bytes, .stack_setting = "http::stack_size()"};
  const Result<void> started = try_go(options, [&] {
    const rt::MemberEnd<WaitGroup, &WaitGroup::done> end(running);
    thrown = rt::catch_exception([&] { next(request, response); });
    returned = true;
  });
  if (!started) {
    running.done();
    throw StatusError(503);
  }
  running.wait();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (!returned) goexit();
}

}  // namespace

Middleware stack_size(std::size_t bytes) {
  if (bytes == 0 || bytes > kStackBytesMax) {
    throw std::invalid_argument("stack_size(): the size is positive and at most 64 MiB");
  }
  return [bytes](Handler next) -> Handler {
    return [bytes, next = std::move(next)](Request& request, ResponseWriter& response) {
      call_on_stack(bytes, next, request, response);
    };
  };
}

}  // namespace tuza::http
