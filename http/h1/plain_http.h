// The answer to a client that speaks plain HTTP on a port for TLS. Thread-safe.
#pragma once

#include <tuza/http/serve/refusal.h>
#include <tuza/netpoll/conn.h>

#include <chrono>

namespace tuza::http {

inline constexpr BadRequest kPlainHttp{400, "this port speaks HTTPS, and was sent plain HTTP", 0};

// For a connection whose handshake has failed with net::is_plain_http(). Goes past the TLS layer, which is broken. Then waits
// until the client has closed its side, at most for `patience`, so that no reset destroys the answer. A HEAD gets no body. Parks.
void answer_plain_http(net::Conn& conn, bool to_head, std::chrono::milliseconds patience);

}  // namespace tuza::http
