// Rules that llhttp leaves to us: interprets a complete head, and rejects a head that is not allowed.
//
// RFC 9112, in its strictest reading: request smuggling exploits two parties that interpret a message
// differently. Each rule in framing.cpp names its section.
//
// Thread-safe; scans the bytes once.
#pragma once

#include <tuza/http/wire/bad_request.h>
#include <tuza/http/wire/head.h>

#include <expected>

namespace tuza::http {

// Checks the head of `head.bytes` bytes at `base`, and fills in the derived members: method, version, path,
// query, host, body length, keep-alive. `connect`: CONNECT is accepted; the path is then "/", and the host the target.
std::expected<void, BadRequest> frame(const char* base, Head& head, bool connect = false);

}  // namespace tuza::http
