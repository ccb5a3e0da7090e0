#include <tuza/netpoll/tls/openssl.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/rt/base/check.h>

#include <string>

namespace tuza::net {
namespace tls {
namespace {

class ErrorCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "tls"; }
  std::string message(int code) const override {
    const auto packed = static_cast<unsigned long>(code);
    if (ERR_GET_LIB(packed) == ERR_LIB_PEM) {
      if (ERR_GET_REASON(packed) == PEM_R_NO_START_LINE) return "no PEM block of the expected kind";
      if (ERR_GET_REASON(packed) == PEM_R_BAD_PASSWORD_READ) return "passphrase required";
    }
    if (ERR_GET_LIB(packed) == ERR_LIB_SSL && ERR_GET_REASON(packed) == SSL_R_WRONG_VERSION_NUMBER)
      return "wrong version number: the peer may not speak TLS";
    if (const char* reason = ERR_reason_error_string(packed); reason != nullptr) return reason;
    return "error " + std::to_string(code) + " of OpenSSL";
  }
};

class VerifyCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "tls certificate"; }
  std::string message(int code) const override {
    return std::string("certificate verify failed: ") + X509_verify_cert_error_string(code);
  }
};

}  // namespace

void start_openssl() {
  static const int started = OPENSSL_init_ssl(
      OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_LOAD_SSL_STRINGS | OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr);
  if (started != 1) rt::fatal("OpenSSL cannot be initialised");
}

const std::error_category& error_category() {
  static const ErrorCategory category;
  return category;
}

const std::error_category& verify_category() {
  static const VerifyCategory category;
  return category;
}

void clear_errors() {
  if (ERR_peek_error() != 0) ERR_clear_error();
}

std::error_code plain_http_code() {
  return {static_cast<int>(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_HTTP_REQUEST)), error_category()};
}

std::error_code take_error(const SSL* ssl) {
  const unsigned long code = ERR_get_error();
  clear_errors();
  if (ERR_SYSTEM_ERROR(code)) return {ERR_GET_REASON(code), std::system_category()};
  if (ssl != nullptr && ERR_GET_LIB(code) == ERR_LIB_SSL &&
      ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return {static_cast<int>(SSL_get_verify_result(ssl)), verify_category()};
  }
  return {static_cast<int>(code), error_category()};
}

}  // namespace tls

bool is_tls_error(const Error& error) {
  return error.code().category() == tls::error_category() ||
         error.code().category() == tls::verify_category();
}

bool is_plain_http(const Error& error) {
  return error.code().category() == tls::error_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.code().value())) == SSL_R_HTTP_REQUEST;
}

}  // namespace tuza::net
