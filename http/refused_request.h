// Public header, part of <tuza/http.h>.
//
// What the server tells of a request that no handler gets: ServerOptions::on_refused.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <string_view>

namespace tuza::http {

// Malformed, too large, too slow, or beyond another limit. One with too large a body is not told of if an access log has a
// line of it: middleware has seen it. The texts are valid during the call.
struct RefusedRequest {
  std::string_view remote;  // as Request::remote()
  // What arrived of the request line, without its line end: any bytes, and none if nothing arrived. Long ones are cut.
  std::string_view request_line;
  int status = 0;           // 400, 408, 413, 414, 421, 431, 501, 503, 505
  std::string_view reason;  // "malformed header field name", also the body of the response
};

}  // namespace tuza::http
