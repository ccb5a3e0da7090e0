// The TLS of a service, as its settings describe it.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/result.h>

#include <memory>

namespace tuza {

// Null if no certificate is set. An error names the file. May block on the files; parks.
Result<std::shared_ptr<net::TlsServer>> load_tls(const config::Config& config);

}  // namespace tuza
