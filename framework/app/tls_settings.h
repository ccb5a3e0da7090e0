// Creates the TLS server side of a service from its settings.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/result.h>

#include <memory>

namespace tuza {

// Returns null if no certificate is configured. An error names the file. May block on the files. Parks.
Result<std::shared_ptr<net::TlsServer>> load_tls(const config::Config& config);

}  // namespace tuza
