// What client and server agree on about permessage-deflate (RFC 7692 7.1), and how a server comes to it. The client's side:
// deflate_answer.h. Pure, thread-safe.
#pragma once

#include <tuza/http/websocket/frame.h>

#include <optional>
#include <string>
#include <string_view>

namespace tuza::http::websocket {

struct DeflateOptions;

struct DeflateWindow {
  bool takeover = true;
  int bits = 15;
};

struct DeflateAgreement {
  bool server_takeover = true, client_takeover = true;
  int server_bits = 15, client_bits = 15;  // of the windows
  bool name_client_bits = false;           // the client permits the server to choose them

  // Of what `sender` sends.
  [[nodiscard]] DeflateWindow window(Role sender) const {
    return sender == Role::kServer ? DeflateWindow{server_takeover, server_bits}
                                   : DeflateWindow{client_takeover, client_bits};
  }
  // The value of Sec-WebSocket-Extensions.
  [[nodiscard]] std::string text() const;
};

// Finds the first offer of permessage-deflate that can be accepted in the value of a Sec-WebSocket-Extensions field. An
// offer with an unknown or malformed parameter is declined. `malformed` is set if the value is no list of extensions.
[[nodiscard]] std::optional<DeflateAgreement> accept_deflate(std::string_view offers,
                                                             const DeflateOptions& options, bool& malformed);

}  // namespace tuza::http::websocket
