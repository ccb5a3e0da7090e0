// The answer of an upstream, on its way to the client.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/sched/result.h>
#include <tuza/sched/time/clock.h>

#include <chrono>

namespace tuza::http {

// Whether the client has kept the proxy waiting. Then an upstream that runs into the limit of the whole call may not be to blame.
class HeldUp {
 public:
  // While it lives, the proxy waits for the client and for nobody else.
  class Wait {
   public:
    explicit Wait(HeldUp& held_up) : held_up_(held_up) {}
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    ~Wait() {
      if (now() - begun_ > kBriefly) held_up_.by_client_ = true;
    }

   private:
    static constexpr std::chrono::milliseconds kBriefly{100};
    HeldUp& held_up_;
    const std::chrono::steady_clock::time_point begun_ = now();
  };
  [[nodiscard]] bool by_client() const { return by_client_; }

 private:
  bool by_client_ = false;
};

// An interim response (1xx), which a proxy has to pass on (RFC 9110 15.2). A client that has gone is seen when the response is
// written. Parks.
void pass_interim(Request& req, int status, const ReceivedHeaders& headers, HeldUp& held_up);
// Status, fields, body and trailers, each as it arrives. An error is one of the upstream: unless the head has been sent, the
// client needs another answer. Parks.
[[nodiscard]] Result<void> pass_back(Request& req, ResponseWriter& res, ClientResponse& answer,
                                     const ReverseProxyOptions& options, HeldUp& held_up);
// An answer with 101: passes bytes on in both directions, until both have ended, nothing has moved
// for too long, or the server begins to shut down. Parks.
[[nodiscard]] Result<void> pass_tunnel(Request& req, ResponseWriter& res, ClientResponse& answer,
                                       const ReverseProxyOptions& options);

}  // namespace tuza::http
