// Rules that llhttp leaves to us: interprets a complete head, and rejects a head that is not allowed.
//
// RFC 9112, in its strictest reading: smuggling of requests and responses exploits two parties that interpret a message
// differently. Each rule names its section: message_framing.cpp has what both directions share.
//
// Thread-safe; scans the bytes once.
#pragma once

#include <tuza/http/wire/head.h>
#include <tuza/http/wire/parse_error.h>

#include <expected>

namespace tuza::http {

// Checks the head of `head.bytes` bytes at `base`, and fills in the derived members: method, version, path,
// query, host, body length, keep-alive. `connect`: CONNECT is accepted; the path is then "/", and the host the target.
std::expected<void, ParseError> frame_request(const char* base, RequestHead& head, bool connect = false);

// The same for the response to a request with the method `asked`: status, version, body length, keep-alive. Without a body,
// content_length is 0 and has_content_length false, whatever the fields say: to HEAD, with 1xx, 204 and 304, and where a
// CONNECT has succeeded, so that what follows is the tunnel.
std::expected<void, ParseError> frame_response(const char* base, ResponseHead& head, Method asked);

}  // namespace tuza::http
