// The opening handshake (RFC 6455 4.2): what a request asks for, and what is agreed on. Neither sends nor waits.
//
// Thread-safe.
#pragma once

#include <tuza/http/request.h>
#include <tuza/http/websocket.h>
#include <tuza/http/websocket/deflate_offer.h>

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http::websocket {

struct Refusal {
  int status = 0;
  std::string_view text;
};

struct Agreement {
  std::string accept;            // Sec-WebSocket-Accept
  std::string_view subprotocol;  // of the options; empty: none
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
