// Base64, RFC 4648: the usual alphabet for credentials, the one of URLs, without padding, for cookies. Strict: a text has
// one encoding only. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

[[nodiscard]] std::string encode_base64url(std::string_view bytes);
// nullopt for other characters, padding, an impossible length, or bits that are left over.
[[nodiscard]] std::optional<std::string> decode_base64url(std::string_view text);
// The same in the usual alphabet, with its padding.
[[nodiscard]] std::string encode_base64(std::string_view bytes);
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace tuza::http
