// Public header, part of <tuza/http.h>.
//
// Cookies that the client can read, but neither change nor prolong: HMAC-SHA256 over name, value and time of the end.
//
//     const http::CookieSigner signer({new_key, old_key});                       // new_key signs, both are accepted
//     signer.set(res, {.name = "__Host-user", .value = "17", .max_age = 12h, .secure = true});
//     if (const std::optional<std::string> user = signer.get(req, "__Host-user")) { ... }
//
// What it does not do: hide the value, or end it before its time. A session that must be revoked keeps its state on the
// server, and has its random number in the cookie. A signed cookie is valid for whoever has it.
//
// Thread-safe. Nothing parks.
#pragma once

#include <tuza/http/cookie.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

class Request;
class ResponseWriter;

class CookieSigner {
 public:
  static constexpr std::size_t kKeyBytesMin = 32;

  // The first key signs; all verify. To rotate, put a new key in front, and remove the old one when the cookies that it
  // has signed have ended. Keys are random bytes ("openssl rand 32"); std::invalid_argument if there is none, or one has
  // less than 32.
  explicit CookieSigner(std::vector<std::string> keys);
  ~CookieSigner();  // erases the keys
  CookieSigner(CookieSigner&&) noexcept = default;
  CookieSigner& operator=(CookieSigner&&) = delete;

  // As ResponseWriter::set_cookie(), signed. The value may have any bytes; the signed one is four thirds as long plus 56
  // bytes. `max_age` or `expires` is needed, std::invalid_argument otherwise: its end is signed, too.
  void set(ResponseWriter& res, Cookie cookie) const;
  // The value of the first cookie of that name that one of the keys has signed and that has not ended; nullopt otherwise.
  [[nodiscard]] std::optional<std::string> get(const Request& req, std::string_view name) const;

  // The text in between, for other carriers than cookies.
  [[nodiscard]] std::string sign(std::string_view name, std::string_view value,
                                 std::chrono::sys_seconds end) const;
  [[nodiscard]] std::optional<std::string> verify(std::string_view name, std::string_view text,
                                                  std::chrono::sys_seconds now) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace tuza::http
