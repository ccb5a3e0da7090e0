// Converts the settings to the options of the server and the log.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/framework/log.h>
#include <tuza/http/options.h>

namespace tuza {

http::ServerOptions server_options(const config::Config& config);
LogOptions log_options(const config::Config& config);
// Whether the log file could be opened; does not make it.
void check_log_file(const config::Config& config, config::Problems& problems);

}  // namespace tuza
