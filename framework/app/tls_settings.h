// Creates the TLS server side of a service from its settings.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/netpoll/tls.h>

#include <expected>
#include <memory>
#include <string>
#include <vector>

namespace tuza {

// Returns null if no certificate is configured. An error names the setting and the file. May block on the files. Parks.
std::expected<std::shared_ptr<net::TlsServer>, std::string> load_tls(const config::Config& config);

// The error of TlsServer::load() or reload(), with the place of the setting that names the file.
std::string tls_problem(const config::Config& config, const Error& error);

// The certificates that are not valid now, with which a server starts nevertheless: "PLACE: FILE: the certificate has expired".
// May block on the files. Parks.
std::vector<std::string> tls_not_valid_now(const config::Config& config);

// Loads each certificate by itself, so that all that are wrong are reported: "PLACE: what is wrong". Certificates that
// are not valid now count as wrong, although a server would start with them. May block on the files. Parks.
void check_tls(const config::Config& config, config::Problems& problems);

}  // namespace tuza
