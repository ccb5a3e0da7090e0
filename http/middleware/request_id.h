// Public header, part of <tuza/http.h>.
//
// Gives each request an id, for logs and for the services that are asked behind this one: X-Request-Id and the W3C's
// traceparent.
//
//     app.use(tuza::http::request_id());
//
//     const auto* id = req.get(tuza::http::kRequestId);       // null without this middleware
//     log.info("{}: no such item", id->id());
//     call(next_service, {{"traceparent", id->traceparent()}});  // or with client_trace()
//
// An incoming id is taken over if it is well formed: 1 to 64 letters, digits and "-_.:+/=@"; so is the trace of an incoming
// traceparent (Trace Context, level 2: one field, lower case, no zero ids). Otherwise both are made up. Without an
// X-Request-Id the id is that of the trace. The response has it as X-Request-Id. Install this middleware outside of
// the access log, which then writes the id.
//
// Ids are for finding lines, not secret and not to be trusted: a client chooses its own unless `trust_client` is false.
// Nothing is allocated.
#pragma once

#include <tuza/http/key.h>
#include <tuza/http/middleware.h>
#include <tuza/sched/sync/context.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tuza::http {

class RequestId {
 public:
  static constexpr std::size_t kIdBytesMax = 64;

  [[nodiscard]] std::string_view id() const { return {id_.data(), id_bytes_}; }
  // 32 and 16 hexadecimal digits: the trace, and the part of it that is this request's.
  [[nodiscard]] std::string_view trace_id() const { return {trace_.data() + 3, 32}; }
  [[nodiscard]] std::string_view span_id() const { return {trace_.data() + 36, 16}; }
  // Whether the caller records this trace.
  [[nodiscard]] bool sampled() const { return sampled_; }
  // For requests to other services: "00-<trace>-<span>-01".
  [[nodiscard]] std::string_view traceparent() const { return {trace_.data(), trace_.size()}; }

 private:
  friend class RequestIds;
  std::array<char, kIdBytesMax> id_{};
  std::array<char, 55> trace_{};
  std::uint8_t id_bytes_ = 0;
  bool sampled_ = false;
};

inline constexpr Key<RequestId> kRequestId;
// RequestId::traceparent() in contexts: client_trace() (http/client/middleware/client_trace.h) reads it.
inline constexpr ContextKey<std::string> kTraceparent{"traceparent"};

struct RequestIdOptions {
  std::string header = "X-Request-Id";
  bool trust_client = true;  // false: ids and traces of requests are ignored
  // The context of each request has its kTraceparent. This makes a context, which handlers may not need.
  bool in_context = false;
};

// Throws std::invalid_argument if `header` is not the name of a header field.
[[nodiscard]] Middleware request_id(RequestIdOptions options = {});

}  // namespace tuza::http
