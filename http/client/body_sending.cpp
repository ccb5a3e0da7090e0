#include <tuza/http/client/body_sending.h>

#include <algorithm>
#include <mutex>

namespace tuza::http {

BodySending::BodySending(const RequestSender& sender, net::Conn& conn, const Context& ctx,
                         const Limits& limits)
    : sender_(sender), conn_(conn), limits_(limits), both_(with_cancel(ctx)) {
  conn_.set_read_deadline(limits_.deadline);
}

Result<void> BodySending::begin() {
  return sending_.try_go({.name = "request body"}, [this] { send(); });
}

void BodySending::send() {
  try {
    sent_ = sender_.send_body(both_.ctx());
  } catch (...) {
    thrown_ = std::current_exception();
    if (!thrown_) throw;  // not a C++ exception: goexit()
  }
  if (thrown_ || sender_.source_error()) return conn_.close();  // nobody would answer
  const LockGuard lock(mutex_);
  if (head_arrived_) return;
  if (!sent_ && sent_.error().timeout()) return conn_.set_read_deadline(net::TimePoint::min());
  if (limits_.head_timeout.count() == 0) return;
  conn_.set_read_deadline(std::min(limits_.deadline, net::time_after_now(limits_.head_timeout)));
}

void BodySending::head_arrived() {
  const LockGuard lock(mutex_);
  head_arrived_ = true;
}

bool BodySending::end() {
  both_.cancel();
  sending_.wait();
  sender_.goes_on_beside(false);
  return sent_ && !thrown_;
}

}  // namespace tuza::http
