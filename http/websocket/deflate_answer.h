// permessage-deflate as a client negotiates it (RFC 7692 7.1): what it offers, and what the server's answer makes of that.
// The server's side: deflate_offer.h. Pure, thread-safe.
#pragma once

#include <tuza/http/websocket/deflate_offer.h>

#include <optional>
#include <string>
#include <string_view>

namespace tuza::http::websocket {

// The value of Sec-WebSocket-Extensions. The server may choose the client's window.
[[nodiscard]] std::string deflate_offer_of(const DeflateOptions& options);

// The server's answer to that offer; nullopt: it is malformed, or not what was offered, and the connection must fail.
[[nodiscard]] std::optional<DeflateAgreement> read_deflate_answer(std::string_view answer,
                                                                  const DeflateOptions& options);

}  // namespace tuza::http::websocket
