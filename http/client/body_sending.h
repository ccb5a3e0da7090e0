// The body of a request on its way in a goroutine of its own, while its owner reads the answer.
//
//     owner:    begin ---> head of the answer ---> [ body of the answer ] ---> end()
//     sending:    `-------- pieces of the source ----------- until the last, or until end()
//
// The limit for the head of the answer begins with the end of the request, and a server that takes no more of the request will
// not answer it: the sending sets the read deadline. Once the head is there, it must not: both happen under one lock.
//
// Thread-unsafe: one owner. The connection must outlive it.
#pragma once

#include <tuza/http/client/request_sender.h>
#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>

#include <chrono>
#include <exception>
#include <optional>

namespace tuza::http {

class BodySending {
 public:
  struct Limits {
    net::TimePoint deadline;
    std::chrono::milliseconds head_timeout;  // 0: none
  };
  BodySending(const RequestSender& sender, net::Conn& conn, const Context& ctx, const Limits& limits);
  BodySending(const BodySending&) = delete;
  BodySending& operator=(const BodySending&) = delete;
  ~BodySending() { (void)end(); }

  // Call once, at first. ENOMEM: there is no stack for a goroutine.
  [[nodiscard]] Result<void> begin();
  void head_arrived();
  // The response is about to be read, and the sending goes on.
  void goes_on_beside() { sender_.goes_on_beside(true); }
  // Stops what is not sent yet, and waits for that. True if nothing was missing. May be repeated. Parks.
  bool end();

  // -- After end(): what the source has thrown, or the error that it has returned. The connection has been closed then.
  [[nodiscard]] const std::exception_ptr& thrown() const { return thrown_; }
  [[nodiscard]] const std::optional<Error>& source_error() const { return sender_.source_error(); }

 private:
  void send();

  RequestSender sender_;
  net::Conn& conn_;
  const Limits limits_;
  const CancellableContext both_;
  Result<void> sent_;
  std::exception_ptr thrown_;
  Mutex mutex_;
  bool head_arrived_ TUZA_GUARDED_BY(mutex_) = false;
  WaitGroup sending_;
};

}  // namespace tuza::http
