#include <tuza/framework/detail/asio_wait.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/park.h>

#include <asio/detail/thread_context.hpp>
#include <asio/error.hpp>

namespace tuza::detail {

AsioWait::AsioWait() {
  if (rt::current_g() == nullptr) {
    rt::fatal("use_goroutine on a thread that is not a goroutine (an Asio handler, perhaps)");
  }
  if (asio::detail::thread_context::top_of_thread_call_stack() != nullptr) {
    rt::fatal("use_goroutine inside io_context::run(): a goroutine cannot park in an Asio handler");
  }
}

void AsioWait::complete() {
  if (first_.claim(first_place_)) {
    first_.wake();
  } else {
    // The claim fails if the runtime has ended first: the goroutine was left behind.
    if (second_.claim(second_place_)) second_.wake();
  }
}

void AsioWait::await() { (context_ended_ ? second_ : first_).block(WaitReason::kCompletion); }

bool AsioWait::await(const Context& ctx) {
  context_ended_ = first_.block(WaitReason::kCompletion, {.event = ctx.event()}) == nullptr;
  return !context_ended_;
}

std::error_code standard_code(std::error_code from_asio) {
  if (from_asio.category() != asio::error::get_system_category()) return from_asio;
  return {from_asio.value(), std::system_category()};
}

}  // namespace tuza::detail
