// What the files here share of OpenSSL: owners, its start, its errors.
//
// OpenSSL keeps a queue of errors per thread, and says what has gone wrong only there. So before a call that
// may fail the queue is emptied; after one that has failed it is read and emptied, on the same thread, with
// no parking call in between. What a call that went well leaves there is nobody's. Nothing of OpenSSL is ever
// on the stack of a goroutine that parks.
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

// Initialises OpenSSL, once. It is never cleaned up: goroutines that are left behind may still be in it when
// the process ends.
void start_openssl();

// What OpenSSL's functions return in its queue: "no start line", "tlsv1 alert unknown ca".
const std::error_category& error_category();
// Why a certificate was not accepted: "certificate verify failed: certificate has expired".
const std::error_category& verify_category();

// This thread's queue is empty afterwards.
void clear_errors();
// The first error of this thread's queue, which is empty afterwards. If it says that a certificate was not
// accepted, `ssl` knows why.
std::error_code take_error(const SSL* ssl = nullptr);

}  // namespace tuza::net::tls
