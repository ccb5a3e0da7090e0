// Answers to earlier requests do not wait as long as the handler of the next one does: they are sent when it parks.
//
//     {
//       const EarlySending early(conn, buffers);   // on the connection's goroutine, around the handler
//       handler(request, response);
//     }
//     stop_early_sending(buffers);                 // on any goroutine, before it uses buffers.out
//
// The connection's goroutine sends, in a call that may park (sched/rt/slice/before_park.h). Meanwhile a goroutine that the
// handler has started may write the response: so both sides change the same word first. Either the one finds that it is to
// send and says that it does, and the other waits for it, which takes one system call; or the other takes the order back.
#pragma once

#include <tuza/http/serve/exchange_buffers.h>
#include <tuza/netpoll/conn.h>

#include <atomic>

namespace tuza::http {

class EarlySending {
 public:
  EarlySending(net::Conn& conn, ExchangeBuffers& buffers);
  ~EarlySending();
  EarlySending(const EarlySending&) = delete;
  EarlySending& operator=(const EarlySending&) = delete;

 private:
  static void act(void* self);

  net::Conn& conn_;
  ExchangeBuffers& buffers_;
  const bool armed_;
};

// Nothing is sent early from now on in this request, and `buffers.out` is the caller's. Parks at most for the time of a
// write that does not wait.
void wait_for_early_sending(ExchangeBuffers& buffers);
inline void stop_early_sending(ExchangeBuffers& buffers) {
  if (buffers.early.load(std::memory_order_acquire) != ExchangeBuffers::Early::kNo) [[unlikely]]
    wait_for_early_sending(buffers);
}

}  // namespace tuza::http
