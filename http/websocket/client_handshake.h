// The opening handshake of a client (RFC 6455 4.1): what it asks for, and whether the answer fits. Neither sends nor waits.
//
// Thread-safe.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/websocket.h>
#include <tuza/http/websocket/handshake.h>

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http::websocket {

// Sec-WebSocket-Key; nullopt: there are no random numbers.
[[nodiscard]] std::optional<std::string> make_key();

// Throws std::invalid_argument for a malformed field, and for one of the handshake's own among `options.headers`.
void ask(ClientRequest& request, std::string_view key, const DialOptions& options);

// What is agreed on by an answer of 101, or what is wrong with it.
[[nodiscard]] std::expected<Agreement, std::string_view> read_answer(ReceivedHeaders headers,
                                                                     std::string_view key,
                                                                     const DialOptions& options);

}  // namespace tuza::http::websocket
