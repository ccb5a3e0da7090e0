// SSL_CTX objects: Mozilla's policy, and what PEM files put into them.
//
// Reading files is a blocking call, and parks; it is done before OpenSSL is called with what was read, but
// for trust_system(), where OpenSSL itself reads.
#pragma once

#include <tuza/netpoll/tls.h>
#include <tuza/netpoll/tls/openssl.h>

#include <string>
#include <vector>

namespace tuza::net::tls {

// `method` is TLS_server_method() or TLS_client_method().
Result<Owner<SSL_CTX>> make_context(const SSL_METHOD* method, TlsVersion min_version);

// The text of a PEM file; `op` is what the error calls the attempt.
Result<std::string> read_pem(std::string_view op, const std::string& file);

// Certificate, chain and key, which match, or the error says which file is wrong.
Result<void> use_certificate(SSL_CTX* context, const TlsCertificate& files);

// Trusts the certificates in `pem`, which is what `file` has; `announce`: and tells clients that.
Result<void> trust(SSL_CTX* context, const std::string& pem, const std::string& file, bool announce);

// Trusts the authorities that the system trusts: a file of them, which takes 100 ms and is read in a blocking
// call that gives the P away, and a folder, from which OpenSSL takes single ones when a handshake needs them.
Result<void> trust_system(SSL_CTX* context);

// The form that names of protocols have on the wire. EINVAL for one that is empty or longer than 255 bytes.
Result<std::string> alpn_on_wire(const std::vector<std::string>& names);

// The DNS names among the subject alternative names of the context's certificate, in lower case.
std::vector<std::string> names_of(SSL_CTX* context);

// ASCII letters only.
void to_lower(std::string& text);

}  // namespace tuza::net::tls
