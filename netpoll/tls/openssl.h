// Shared OpenSSL support: owning pointers, initialisation, errors.
//
// OpenSSL reports the cause of a failure only in an error queue per thread. The queue is therefore emptied
// before a call that may fail; after a call that has failed, the queue is read and emptied on the same
// thread, with no parking call in between. Errors left in the queue by successful calls are ignored. No
// OpenSSL frame is ever on the stack of a goroutine that parks.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <system_error>

namespace tuza::net::tls {

struct Free {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owner = std::unique_ptr<T, Free>;

// Initialises OpenSSL, once. OpenSSL is never cleaned up: abandoned goroutines may still be inside it when
// the process ends.
void start_openssl();

// Category of the error codes in OpenSSL's queue: "no start line", "tlsv1 alert unknown ca".
const std::error_category& error_category();
// Category of the reasons for rejecting a certificate: "certificate verify failed: certificate has expired".
const std::error_category& verify_category();

// Empties this thread's queue.
void clear_errors();
// What OpenSSL says of a client that speaks HTTP instead of TLS.
std::error_code plain_http_code();
// Returns the first error of this thread's queue, and empties the queue. If the error is a rejected
// certificate, the reason is taken from `ssl`.
std::error_code take_error(const SSL* ssl = nullptr);

}  // namespace tuza::net::tls
