// The opening handshake of a server (RFC 6455 4.2): what a request asks for, and what is agreed on. Neither sends nor
// waits. The client's: client_handshake.h.
//
// Thread-safe.
#pragma once

#include <tuza/http/request.h>
#include <tuza/http/websocket.h>
#include <tuza/http/websocket/deflate_offer.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http::websocket {

constexpr std::size_t kKeyBytes = 16;  // of Sec-WebSocket-Key, decoded

struct Refusal {
  int status = 0;
  std::string_view text;
};

// Throws std::invalid_argument for impossible options.
void check(const DeflateOptions& options);

struct Agreement {
  std::string accept = {};            // Sec-WebSocket-Accept; a client needs none
  std::string_view subprotocol = {};  // of the options; empty: none
  std::optional<DeflateAgreement> deflate = {};
};

[[nodiscard]] std::expected<Agreement, Refusal> agree(const Request& request, const Options& options);

// Sec-WebSocket-Accept for a key.
[[nodiscard]] std::string accept_of(std::string_view key);

// Whether a page of this origin may connect (Options::origins).
[[nodiscard]] bool allows_origin(const Options& options, std::string_view origin, std::string_view host);

// The status line and all fields, as sent. `extra`: whole lines.
[[nodiscard]] std::string answer(const Agreement& agreement, std::string_view extra);

}  // namespace tuza::http::websocket
