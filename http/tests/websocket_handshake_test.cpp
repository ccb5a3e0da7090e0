// The opening handshake of WebSockets: what is refused, and what is agreed on. In memory: what is accepted ends with 501,
// because there is no connection.
#include <tuza/http/testing.h>
#include <tuza/http/websocket.h>
#include <tuza/http/websocket/deflate_answer.h>
#include <tuza/http/websocket/deflate_offer.h>
#include <tuza/http/websocket/handshake.h>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

constexpr int kAccepted = 501;

HeaderFields handshake_fields() {
  return {{"Connection", "Upgrade"},
          {"Upgrade", "websocket"},
          {"Sec-WebSocket-Version", "13"},
          {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
}

CallResult shake(const HeaderFields& fields, const websocket::Options& options = {},
                 std::string_view request = "GET /") {
  return call(
      [&](Request& req, ResponseWriter& res) {
        const auto socket = websocket::upgrade(req, res, options);
        EXPECT_FALSE(socket);
      },
      request, {.headers = fields});
}

// The handshake with another value of a field, or without it.
HeaderFields with_field(std::string_view name, std::string_view value) {
  HeaderFields fields;
  for (auto& field : handshake_fields()) {
    if (field.first != name) fields.push_back(field);
  }
  if (!value.empty()) fields.emplace_back(name, value);
  return fields;
}

TEST(WebSocketHandshake, EachFieldMustBeAsItShould) {
  EXPECT_EQ(shake(handshake_fields()).status, kAccepted);
  const struct {
    const char *name, *value;
    int status;
  } cases[] = {
      {"Connection", "", 426},
      {"Connection", "close", 426},
      {"Connection", "keep-alive, UPGRADE", kAccepted},
      {"Upgrade", "", 426},
      {"Upgrade", "h2c", 426},
      {"Upgrade", "h2c, WebSocket", kAccepted},
      {"Sec-WebSocket-Version", "", 426},
      {"Sec-WebSocket-Version", "8", 426},
      {"Sec-WebSocket-Version", "13, 8", 426},
      {"Sec-WebSocket-Key", "", 400},
      {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZ", 400},
      {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j", 400},      // 15 bytes
      {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZSE=", 400},  // 17 bytes
      {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==, x", 400},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(shake(with_field(c.name, c.value)).status, c.status) << c.name << ": " << c.value;
  }
  HeaderFields twice = handshake_fields();
  twice.emplace_back("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
  EXPECT_EQ(shake(twice).status, 400);
  EXPECT_EQ(shake(handshake_fields(), {}, "POST /").status, 400);
}

TEST(WebSocketHandshake, ARefusalSaysWhatWouldBeAccepted) {
  const CallResult res = shake(with_field("Sec-WebSocket-Version", "7"));
  EXPECT_EQ(res.header("Sec-WebSocket-Version"), "13");
  EXPECT_EQ(res.header("Upgrade"), "websocket");
  EXPECT_EQ(res.header("Connection"), "Upgrade");
  EXPECT_TRUE(res.closes) << "a proxy that sees a tunnel must not send on what follows";
}

TEST(WebSocketHandshake, PagesOfOtherHostsAreRefused) {
  const struct {
    const char *origin, *host;
    std::vector<std::string> allowed;
    bool accepted;
  } cases[] = {
      {"http://example.com", "example.com", {}, true},
      {"https://EXAMPLE.com", "example.com", {}, true},
      {"http://example.com", "example.com:80", {}, true},
      {"https://example.com:443", "example.com", {}, true},
      {"http://example.com:8080", "example.com:8080", {}, true},
      {"http://example.com:8080", "example.com", {}, false},
      {"http://evil.com", "example.com", {}, false},
      {"http://example.com.evil.com", "example.com", {}, false},
      {"http://evil.com/example.com", "example.com", {}, false},
      {"http://evil@example.com", "example.com", {}, false},
      {"http://", "", {}, false},
      {"null", "example.com", {}, false},
      {"null", "null", {}, false},
      {"", "example.com", {}, false},
      {"https://app.example", "api.example", {"https://app.example"}, true},
      {"https://APP.example", "api.example", {"https://app.example"}, true},
      {"http://app.example", "api.example", {"https://app.example"}, false},
      {"https://api.example", "api.example", {"https://app.example"}, false},
      {"null", "api.example", {"*"}, true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(websocket::allows_origin({.origins = c.allowed}, c.origin, c.host), c.accepted) << c.origin;
  }
  HeaderFields fields = handshake_fields();
  fields.emplace_back("Origin", "http://evil.com");
  EXPECT_EQ(shake(fields).status, 403);
  EXPECT_EQ(shake(fields, {.origins = {"http://evil.com"}}).status, kAccepted);
  fields.emplace_back("Origin", "http://evil.com");
  EXPECT_EQ(shake(fields, {.origins = {"http://evil.com"}}).status, 403) << "two origins are none";
}

TEST(WebSocketHandshake, OffersOfCompression) {
  const websocket::DeflateOptions usual{.enabled = true};
  const websocket::DeflateOptions small{.enabled = true, .context_takeover = false, .window_bits = 10};
  const struct {
    const char* offers;
    const websocket::DeflateOptions& options;
    const char* answer;  // empty: none is accepted; "!": malformed
  } cases[] = {
      {"", usual, ""},
      {"permessage-deflate", usual, "permessage-deflate"},
      {"PERMESSAGE-DEFLATE", usual, ""},
      {"x-webkit-deflate-frame, permessage-deflate", usual, "permessage-deflate"},
      {"permessage-deflate; client_max_window_bits", usual, "permessage-deflate"},
      {"permessage-deflate;client_max_window_bits=12", usual,
       "permessage-deflate; client_max_window_bits=12"},
      {"permessage-deflate; client_max_window_bits=\"12\"", usual,
       "permessage-deflate; client_max_window_bits=12"},
      {"permessage-deflate; client_max_window_bits=8", usual, "permessage-deflate"},
      {"permessage-deflate; server_max_window_bits=9", usual, "permessage-deflate; server_max_window_bits=9"},
      {"permessage-deflate; server_max_window_bits=8", usual, ""},
      {"permessage-deflate; server_max_window_bits=8, permessage-deflate", usual, "permessage-deflate"},
      {"permessage-deflate; server_max_window_bits", usual, ""},
      {"permessage-deflate; server_max_window_bits=16", usual, ""},
      {"permessage-deflate; server_max_window_bits=09", usual, ""},
      {"permessage-deflate; server_no_context_takeover; client_no_context_takeover", usual,
       "permessage-deflate; server_no_context_takeover; client_no_context_takeover"},
      {"permessage-deflate; server_no_context_takeover=1", usual, ""},
      {"permessage-deflate; server_no_context_takeover; server_no_context_takeover", usual, ""},
      {"permessage-deflate; unknown", usual, ""},
      {"permessage-deflate", small,
       "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
       "server_max_window_bits=10"},
      {"permessage-deflate; client_max_window_bits", small,
       "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
       "server_max_window_bits=10; "
       "client_max_window_bits=10"},
      {", ,permessage-deflate,", usual, "permessage-deflate"},
      {"permessage-deflate;", usual, "!"},
      {"permessage-deflate; a=", usual, "!"},
      {"permessage-deflate; a=\"b c\"", usual, "!"},
      {"permessage-deflate; a=\"b", usual, "!"},
      {"permessage-deflate other", usual, "!"},
      {"=", usual, "!"},
  };
  for (const auto& c : cases) {
    bool malformed = false;
    const auto agreed = websocket::accept_deflate(c.offers, c.options, malformed);
    EXPECT_EQ(malformed ? "!" : agreed ? agreed->text() : "", c.answer) << c.offers;
  }
  HeaderFields fields = handshake_fields();
  fields.emplace_back("Sec-WebSocket-Extensions", "permessage-deflate;");
  EXPECT_EQ(shake(fields).status, kAccepted) << "without compression nobody reads it";
  EXPECT_EQ(shake(fields, {.deflate = usual}).status, 400);
}

TEST(WebSocketHandshake, AnswersToAnOfferOfCompression) {
  const websocket::DeflateOptions usual{.enabled = true};
  const websocket::DeflateOptions small{.enabled = true, .context_takeover = false, .window_bits = 10};
  EXPECT_EQ(websocket::deflate_offer_of(usual), "permessage-deflate; client_max_window_bits");
  EXPECT_EQ(websocket::deflate_offer_of(small),
            "permessage-deflate; client_max_window_bits=10; server_max_window_bits=10; "
            "server_no_context_takeover; client_no_context_takeover");
  const std::string confirmed = "permessage-deflate; server_no_context_takeover; server_max_window_bits=10";
  const struct {
    std::string answer;
    const websocket::DeflateOptions& offered;
    std::string agreed;  // as a server would write it; empty: none
  } cases[] = {
      {"permessage-deflate", usual, "permessage-deflate"},
      {"permessage-deflate; server_no_context_takeover; client_no_context_takeover", usual,
       "permessage-deflate; server_no_context_takeover; client_no_context_takeover"},
      {"permessage-deflate; server_max_window_bits=\"12\"", usual,
       "permessage-deflate; server_max_window_bits=12"},
      {"permessage-deflate; server_max_window_bits=8", usual, "permessage-deflate; server_max_window_bits=9"},
      {"permessage-deflate; client_max_window_bits=9", usual, "permessage-deflate; client=9"},
      {"permessage-deflate; client_max_window_bits=8", usual, ""},
      {"permessage-deflate; client_max_window_bits", usual, ""},
      {"permessage-deflate; server_max_window_bits=16", usual, ""},
      {"permessage-deflate; server_max_window_bits=12; server_max_window_bits=12", usual, ""},
      {"permessage-deflate; server_no_context_takeover=1", usual, ""},
      {"permessage-deflate; unknown", usual, ""},
      {"permessage-deflate, permessage-deflate", usual, ""},
      {"permessage-deflate;", usual, ""},
      {"x-other", usual, ""},
      {confirmed, small,
       "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
       "server_max_window_bits=10; client=10"},
      {confirmed + "; client_max_window_bits=12", small,
       "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
       "server_max_window_bits=10; client=10"},
      {"permessage-deflate; server_no_context_takeover", small, ""},
      {"permessage-deflate; server_no_context_takeover; server_max_window_bits=11", small, ""},
      {"permessage-deflate; server_max_window_bits=10", small, ""},
  };
  for (const auto& c : cases) {
    const auto agreed = websocket::read_deflate_answer(c.answer, c.offered);
    std::string text = agreed ? agreed->text() : "";
    if (agreed && agreed->client_bits < 15) text += "; client=" + std::to_string(agreed->client_bits);
    EXPECT_EQ(text, c.agreed) << c.answer;
  }
}

TEST(WebSocketHandshake, ImpossibleOptionsThrow) {
  for (const websocket::Options& options :
       {websocket::Options{.deflate = {.window_bits = 8}}, websocket::Options{.deflate = {.level = 0}},
        websocket::Options{.subprotocols = {""}}}) {
    const CallResult res = call(
        [&](Request& req, ResponseWriter& writer) {
          EXPECT_THROW((void)websocket::upgrade(req, writer, options), std::invalid_argument);
        },
        "GET /", {.headers = handshake_fields()});
    EXPECT_EQ(res.status, 200);
  }
}

}  // namespace
}  // namespace tuza::http::testing
