#include <tuza/framework/app/options.h>

#include <tuza/framework/log/output.h>

#include <chrono>
#include <string>
#include <vector>

namespace tuza {
namespace {

std::vector<net::Network> networks(const config::List& texts) {
  std::vector<net::Network> all;
  for (const std::string& text : texts) all.push_back(net::Network::parse(text).value());
  return all;
}

}  // namespace

http::ServerOptions server_options(const config::Config& config) {
  const auto count = [&](std::string_view name) { return static_cast<std::size_t>(config.number(name)); };
  const auto time = [&](std::string_view name) { return std::chrono::milliseconds(config.number(name)); };
  return {.request_line_bytes_max = count("http.request_line_max"),
          .head_bytes_max = count("http.head_max"),
          .headers_max = count("http.headers_max"),
          .body_bytes_max = count("http.body_max"),
          .bodies_bytes_max = count("http.bodies_max"),
          .chunk_overhead_bytes_max = count("http.chunk_overhead_max"),
          .header_timeout = time("http.header_timeout"),
          .idle_timeout = time("http.idle_timeout"),
          .request_timeout = time("http.request_timeout"),
          .body_timeout = time("http.body_timeout"),
          .body_rate_min_bytes_per_second = count("http.body_rate_min"),
          .skip_timeout = time("http.skip_timeout"),
          .write_timeout = time("http.write_timeout"),
          .response_rate_min_bytes_per_second =
              static_cast<std::uint32_t>(config.number("http.response_rate_min")),
          .requests_per_connection_max = count("http.requests_per_connection_max"),
          .connection_age_max = time("http.connection_age_max"),
          .max_connections = count("http.max_connections"),
          .connections_per_address_max = count("http.connections_per_address_max"),
          .proxy_protocol = config.text("http.proxy_protocol") == "required" ? net::ProxyProtocol::kRequired
                                                                             : net::ProxyProtocol::kOff,
          .proxies = networks(config.list("http.trusted_proxies")),
          .connect = config.boolean("http.connect"),
          .stack_bytes = count("http.stack"),
          .shutdown_timeout = time("shutdown.timeout"),
          .server_name = config.text("http.server_name")};
}

LogOptions log_options(const config::Config& config) {
  return {.level = config.text("log.level"),
          .json = config.text("log.format") == "json",
          .file = config.text("log.file"),
          .queue_lines = static_cast<std::size_t>(config.number("log.queue_lines"))};
}

void check_log_file(const config::Config& config, config::Problems& problems) {
  const std::string& path = config.text("log.file");
  if (path == "stderr") return;
  if (const Result<void> opens = logging::Output::may_open(path); !opens) {
    problems.push_back(config.place("log.file") + ": " + opens.error().message());
  }
}

}  // namespace tuza
