// The rules llhttp leaves to us: what a complete head means, and whether it is allowed to mean that.
//
// RFC 9112 with every doubt resolved for strictness: two parties that read a message differently are how
// requests are smuggled. Each rule names its section in framing.cpp.
//
// Thread-safe; looks at the bytes once.
#pragma once

#include <tuza/http/wire/bad_request.h>
#include <tuza/http/wire/head.h>

#include <expected>

namespace tuza::http {

// Checks the head whose `head.bytes` bytes begin at `base` and fills in what follows from it: method,
// version, path, query, host, body length, keep-alive.
std::expected<void, BadRequest> frame(const char* base, Head& head);

}  // namespace tuza::http
