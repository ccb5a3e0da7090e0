#include <tuza/framework/app/options.h>

#include <chrono>

namespace tuza {

http::ServerOptions server_options(const config::Config& config) {
  const auto count = [&](std::string_view name) { return static_cast<std::size_t>(config.number(name)); };
  const auto time = [&](std::string_view name) { return std::chrono::milliseconds(config.number(name)); };
  return {.request_line_bytes_max = count("http.request_line_max"),
          .head_bytes_max = count("http.head_max"),
          .headers_max = count("http.headers_max"),
          .body_bytes_max = count("http.body_max"),
          .chunk_overhead_bytes_max = count("http.chunk_overhead_max"),
          .header_timeout = time("http.header_timeout"),
          .idle_timeout = time("http.idle_timeout"),
          .body_timeout = time("http.body_timeout"),
          .body_rate_min_bytes_per_second = count("http.body_rate_min"),
          .skip_timeout = time("http.skip_timeout"),
          .write_timeout = time("http.write_timeout"),
          .max_connections = count("http.max_connections"),
          .shutdown_timeout = time("shutdown.timeout"),
          .server_name = config.text("http.server_name")};
}

LogOptions log_options(const config::Config& config) {
  return {.level = config.text("log.level"),
          .json = config.text("log.format") == "json",
          .file = config.text("log.file"),
          .queue_lines = static_cast<std::size_t>(config.number("log.queue_lines"))};
}

}  // namespace tuza
