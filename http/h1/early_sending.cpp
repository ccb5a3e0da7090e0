#include <tuza/http/h1/early_sending.h>

#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/slice/before_park.h>

#include <cstddef>

namespace tuza::http {

using Early = ExchangeBuffers::Early;

EarlySending::EarlySending(net::Conn& conn, ExchangeBuffers& buffers)
    : conn_(conn), buffers_(buffers), armed_(!buffers.out.empty()) {
  if (!armed_) return;
  buffers_.early.store(Early::kDue, std::memory_order_relaxed);  // seen by what the handler starts later
  rt::set_before_park(&act, this);
}

EarlySending::~EarlySending() {
  if (!armed_) return;
  rt::clear_before_park();
  buffers_.early.store(Early::kNo, std::memory_order_relaxed);  // the handler's goroutines have ended with it
}

// What the socket does not take now is sent later: waiting for the client here would delay the handler, which may hold a
// lock.
void EarlySending::act(void* self) {
  ExchangeBuffers& buffers = static_cast<EarlySending*>(self)->buffers_;
  Early due = Early::kDue;
  if (!buffers.early.compare_exchange_strong(due, Early::kSends, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
    return;
  }
  if (const Result<std::size_t> sent = static_cast<EarlySending*>(self)->conn_.try_write(buffers.out)) {
    buffers.out.erase(0, *sent);
    buffers.sent_early = true;
  }
  // Pairs with the acquire of stop_early_sending() and wait_for_early_sending(): they see `out` as it is now.
  buffers.early.store(Early::kNo, std::memory_order_release);
}

void wait_for_early_sending(ExchangeBuffers& buffers) {
  Early due = Early::kDue;
  if (buffers.early.compare_exchange_strong(due, Early::kNo, std::memory_order_acquire,
                                            std::memory_order_acquire)) {
    return;
  }
  while (buffers.early.load(std::memory_order_acquire) == Early::kSends) yield();
}

}  // namespace tuza::http
