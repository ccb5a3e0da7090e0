#include <tuza/framework/detail/asio_wait.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/park.h>

namespace tuza::detail {

AsioWait::AsioWait(bool inside_handler) {
  if (rt::current_g() == nullptr) {
    rt::fatal("use_goroutine on a thread that is not a goroutine (an Asio handler, perhaps)");
  }
  if (inside_handler) {
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

}  // namespace tuza::detail
