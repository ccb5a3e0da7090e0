// Stream::call: one call into OpenSSL, including the handling of its error queue before and after the call.
#pragma once

#include <openssl/err.h>
#include <tuza/netpoll/tls/stream.h>

namespace tuza::net::tls {

template <class Call>
Stream::Outcome Stream::call(Call ssl_call) {
  clear_errors();
  const int result = ssl_call(ssl_.get());
  if (result > 0) [[likely]]
    return {SSL_ERROR_NONE, {}};
  const int status = SSL_get_error(ssl_.get(), result);
  const bool failed = status == SSL_ERROR_SSL || status == SSL_ERROR_SYSCALL;
  if (!failed || ERR_peek_error() == 0) {
    clear_errors();
    return {status, {}};
  }
  return {status, take_error(ssl_.get())};
}

}  // namespace tuza::net::tls
