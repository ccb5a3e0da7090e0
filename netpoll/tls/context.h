// SSL_CTX objects: Mozilla's policy, and the certificates and keys loaded from PEM files.
//
// Reading files is a blocking call, and parks. The files are read before OpenSSL is called with their
// content, except in trust_system(), where OpenSSL itself reads.
#pragma once

#include <tuza/netpoll/tls.h>
#include <tuza/netpoll/tls/openssl.h>

#include <string>
#include <vector>

namespace tuza::net::tls {

// `method` is TLS_server_method() or TLS_client_method().
Result<Owner<SSL_CTX>> make_context(const SSL_METHOD* method, TlsVersion min_version);

// The text of a PEM file; `op` names the operation in the error.
Result<std::string> read_pem(std::string_view op, const std::string& file);

// Loads certificate, chain and key, which must match. An error names the file that is wrong.
Result<void> use_certificate(SSL_CTX* context, const TlsCertificate& files);

// Trusts the certificates in `pem`, the content of `file`. `announce`: also sends their names to clients.
Result<void> trust(SSL_CTX* context, const std::string& pem, const std::string& file, bool announce);

// Trusts the authorities that the system trusts: a file, which takes 100 ms to read, in a blocking call that
// gives the P away; and a folder, from which OpenSSL reads single certificates when a handshake needs them.
Result<void> trust_system(SSL_CTX* context);

// The wire format of protocol names. EINVAL if a name is empty or longer than 255 bytes.
Result<std::string> alpn_on_wire(const std::vector<std::string>& names);

// The DNS names among the subject alternative names of the context's certificate, in lower case.
std::vector<std::string> names_of(SSL_CTX* context);

// Lower-cases ASCII letters only.
void to_lower(std::string& text);

}  // namespace tuza::net::tls
