#include <tuza/http/credentials.h>

#include <tuza/http/wire/base64.h>
#include <tuza/http/wire/chars.h>

#include <openssl/crypto.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace tuza::http {
namespace {

// What follows `scheme` and its spaces.
std::optional<std::string_view> after_scheme(std::string_view field, std::string_view scheme) {
  if (field.size() <= scheme.size() || !equals_ignoring_case(field.substr(0, scheme.size()), scheme) ||
      field[scheme.size()] != ' ') {
    return std::nullopt;
  }
  field.remove_prefix(scheme.size());
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  return field;
}

bool is_control(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }

}  // namespace

std::optional<BasicCredentials> parse_basic_auth(std::string_view field) {
  const std::optional<std::string_view> encoded = after_scheme(field, "Basic");
  if (!encoded) return std::nullopt;
  const std::optional<std::string> pair = decode_base64(*encoded);
  if (!pair) return std::nullopt;
  const std::size_t colon = pair->find(':');
  if (colon == std::string::npos || std::ranges::any_of(*pair, is_control)) return std::nullopt;
  return BasicCredentials{pair->substr(0, colon), pair->substr(colon + 1)};
}

std::string basic_auth(std::string_view user, std::string_view password) {
  if (user.contains(':')) throw std::invalid_argument("http::basic_auth: a user with a colon");
  if (std::ranges::any_of(user, is_control) || std::ranges::any_of(password, is_control))
    throw std::invalid_argument("http::basic_auth: a control character in user or password");
  return "Basic " + encode_base64(std::string(user).append(":").append(password));
}

std::optional<std::string_view> parse_bearer_token(std::string_view field) {
  const std::optional<std::string_view> token = after_scheme(field, "Bearer");
  if (!token) return std::nullopt;
  const std::string_view text = token->substr(0, token->find_last_not_of('=') + 1);
  const bool good = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~+/").find(c) != std::string_view::npos;
  });
  return good ? token : std::nullopt;
}

bool constant_time_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tuza::http
