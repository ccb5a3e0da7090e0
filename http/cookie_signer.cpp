#include <tuza/http/cookie_signer.h>

#include <tuza/http/credentials.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/wire/base64.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::chrono::seconds kForEver{std::int64_t{1} << 40};  // from now, without an overflow

// Of the text before the signature, "value.end", under the cookie's name. The length in front of the name keeps
// ("a", "bc") and ("ab", "c") apart; the first word keeps signatures for other purposes under the same key apart.
std::string signature(std::string_view key, std::string_view name, std::string_view text) {
  const std::string message =
      "tuza cookie " + std::to_string(name.size()) + " " + std::string(name) + std::string(text);
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac;
  unsigned int bytes = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac.data(),
           &bytes) == nullptr) {
    throw std::runtime_error("OpenSSL cannot compute an HMAC");
  }
  return encode_base64url({reinterpret_cast<const char*>(mac.data()), bytes});
}

}  // namespace

CookieSigner::CookieSigner(std::vector<std::string> keys) : keys_(std::move(keys)) {
  if (keys_.empty()) throw std::invalid_argument("CookieSigner: no key");
  for (const std::string& key : keys_) {
    if (key.size() < kKeyBytesMin) throw std::invalid_argument("CookieSigner: a key has less than 32 bytes");
  }
}

CookieSigner::~CookieSigner() {
  for (std::string& key : keys_) OPENSSL_cleanse(key.data(), key.size());
}

std::string CookieSigner::sign(std::string_view name, std::string_view value,
                               std::chrono::sys_seconds end) const {
  std::string text = encode_base64url(value) + "." + std::to_string(end.time_since_epoch().count());
  return text + "." + signature(keys_.front(), name, text);
}

std::optional<std::string> CookieSigner::verify(std::string_view name, std::string_view text,
                                                std::chrono::sys_seconds now) const {
  const std::size_t last = text.rfind('.');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const std::string_view what = text.substr(0, last);
  // Every key is tried, so that the time does not tell which one it was.
  bool good = false;
  for (const std::string& key : keys_) {
    good = constant_time_equal(signature(key, name, what), text.substr(last + 1)) || good;
  }
  if (!good) return std::nullopt;
  const std::size_t dot = what.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view number = what.substr(dot + 1);
  std::int64_t end = 0;
  const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), end);
  if (error != std::errc{} || stop != number.data() + number.size()) return std::nullopt;
  if (now.time_since_epoch().count() >= end) return std::nullopt;
  return decode_base64url(what.substr(0, dot));
}

void CookieSigner::set(ResponseWriter& res, Cookie cookie) const {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (!cookie.max_age && !cookie.expires) {
    throw std::invalid_argument("cookie \"" + cookie.name + "\": a signed cookie needs max_age or expires");
  }
  const auto end = cookie.max_age ? now + std::clamp(*cookie.max_age, -kForEver, kForEver) : *cookie.expires;
  cookie.value = sign(cookie.name, cookie.value, end);
  res.set_cookie(cookie);
}

std::optional<std::string> CookieSigner::get(const Request& req, std::string_view name) const {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  for (const HeaderField cookie : req.cookies()) {
    if (cookie.name != name) continue;
    if (std::optional<std::string> value = verify(name, cookie.value, now)) return value;
  }
  return std::nullopt;
}

}  // namespace tuza::http
