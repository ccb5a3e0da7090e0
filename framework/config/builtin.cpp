// The keys that every program made with tuza::App has. conf/production.toml lists all of them.
#include <tuza/framework/config/schema.h>
#include <tuza/http/options.h>

#include <chrono>
#include <limits>
#include <utility>

namespace tuza::config {
namespace {

constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kHour = 3'600'000;

class Section {
 public:
  Section(Schema& schema, std::string name) : schema_(schema), name_(std::move(name) + ".") {}

  void boolean(const char* name, bool by_default, const char* doc) {
    add(name, {.type = Type::kBool, .by_default = by_default, .doc = doc});
  }
  void number(const char* name, std::size_t by_default, std::int64_t min, std::int64_t max, const char* unit,
              const char* doc) {
    add_range(name, Type::kInt, by_default, min, max, doc, unit);
  }
  void size(const char* name, std::size_t by_default, std::int64_t min, std::int64_t max, const char* doc) {
    add_range(name, Type::kSize, by_default, min, max, doc);
  }
  void duration(const char* name, std::chrono::milliseconds by_default, std::int64_t min, std::int64_t max,
                const char* doc) {
    add_range(name, Type::kDuration, static_cast<std::size_t>(by_default.count()), min, max, doc);
  }
  void text(const char* name, Type type, const std::string& by_default, const char* doc) {
    add(name, {.type = type, .by_default = by_default, .doc = doc});
  }
  void choice(const char* name, const char* by_default, List choices, const char* doc, bool reload = false) {
    add(name, {.type = Type::kChoice,
               .by_default = std::string(by_default),
               .choices = std::move(choices),
               .doc = doc,
               .reload = reload});
  }
  void add(const char* name, Key key) {
    key.name = name_ + name;
    schema_.add(std::move(key));
  }

 private:
  void add_range(const char* name, Type type, std::size_t by_default, std::int64_t min, std::int64_t max,
                 const char* doc, const char* unit = "") {
    add(name, {.type = type,
               .by_default = static_cast<std::int64_t>(by_default),
               .min = min,
               .max = max,
               .unit = unit,
               .doc = doc});
  }

  Schema& schema_;
  std::string name_;
};

void add_http(Schema& schema) {
  const http::ServerOptions defaults;
  Section http(schema, "http");
  http.add("listen", {.type = Type::kAddresses,
                      .by_default = List{"127.0.0.1:8080"},
                      .doc = "Addresses to serve on. Sockets that systemd passes in take precedence"});
  http.size("request_line_max", defaults.request_line_bytes_max, 64, kMiB,
            "Maximum length of the request line; longer: 414");
  http.size("head_max", defaults.head_bytes_max, 256, kMiB,
            "Maximum size of the request line and all headers; larger: 431");
  http.number("headers_max", defaults.headers_max, 1, 256, "headers", "Maximum number of headers; more: 431");
  http.size("body_max", defaults.body_bytes_max, 0, 1024 * kGiB,
            "Maximum size of a request body; larger: 413");
  http.size(
      "bodies_max", defaults.bodies_bytes_max, 0, 1024 * kGiB,
      "Maximum size of all request bodies together that handlers hold as a whole, per listener; larger: 503. "
      "0B: no limit");
  http.size("chunk_overhead_max", defaults.chunk_overhead_bytes_max, 16, kMiB,
            "Maximum size of all chunk sizes, extensions and trailers of a chunked body, beyond 8 bytes for "
            "each byte of data; larger: 400");
  http.duration("header_timeout", defaults.header_timeout, 1, kHour,
                "Maximum time from the first byte of a request to its last header; longer: 408");
  http.duration("idle_timeout", defaults.idle_timeout, 1, 24 * kHour,
                "Maximum time between requests of a connection, and before its first request; then the "
                "connection is closed");
  http.duration("request_timeout", defaults.request_timeout, 0, 24 * kHour,
                "Time from the head of a request to the end of its context, which the handler's waits may "
                "take; 0s: no limit");
  http.duration(
      "body_timeout", defaults.body_timeout, 1, 24 * kHour,
      "Time allowed to wait for a request body, in addition to what http.body_rate_min allows; longer: 408");
  http.size("body_rate_min", defaults.body_rate_min_bytes_per_second, 1, kGiB,
            "Minimum rate of a request body, in bytes per second. Waits for the body may take as long as it "
            "would at this rate, plus http.body_timeout");
  http.duration("skip_timeout", defaults.skip_timeout, 0, kHour,
                "Maximum time to read the part of a body that the handler did not read, in order to keep the "
                "connection");
  http.duration("write_timeout", defaults.write_timeout, 1, 24 * kHour,
                "A client that accepts no part of a response for this long is cut off");
  http.size("response_rate_min", defaults.response_rate_min_bytes_per_second, 0, kGiB,
            "Minimum rate at which a client accepts responses, in bytes per second: it is cut off when it "
            "has made the server wait for longer than they take at this rate, plus http.write_timeout. 0: no "
            "minimum");
  http.size(
      "stack", defaults.stack_bytes, 64 * kKiB, 64 * kMiB,
      "Stack of a connection, for handlers: 64 KiB, 256 KiB, 1 MiB, 8 MiB or 64 MiB; untouched pages take no "
      "memory");
  http.number("requests_per_connection_max", 0, 0, 1'000'000'000, "requests",
              "A connection is closed with the response to this request; 0: no limit");
  http.duration("connection_age_max", defaults.connection_age_max, 0, 365 * (24 * kHour),
                "A connection is closed with its first response after this age, less a random part of up to "
                "a tenth; 0s: no limit");
  http.number("connections_per_address_max", 0, 0, 10'000'000, "connections",
              "Maximum number of open connections from one IPv4 address or IPv6 /64; further ones are closed "
              "at once. 0: no limit");
  http.number("max_connections", 0, 0, 10'000'000, "connections",
              "Maximum number of open connections per listener; for a further one, that which has been idle "
              "for longest is closed, or it waits. 0: what descriptors there are for, less a quarter (32 to "
              "1024), shared by all listeners");
  http.add("trusted_proxies", {.type = Type::kNetworks,
                               .by_default = List{},
                               .doc = "Networks of the proxies that may say who the client is"});
  http.choice(
      "proxy_protocol", "off", {"off", "required"},
      "Whether each connection begins with a header of the PROXY protocol, version 1 or 2, before TLS; "
      "others than http.trusted_proxies may then not connect");
  http.text("server_name", Type::kLine, defaults.server_name, "Server header of responses; empty: no header");
  http.boolean("connect", false, "CONNECT reaches the handlers, for proxies; otherwise it gets 501");
  http.boolean("access_log", false, "Write one log line per request");
}

void add_tls(Schema& schema) {
  Section tls(schema, "tls");
  tls.text("certificate", Type::kPath, "",
           "Certificate chain (PEM) for clients that ask for a host name without an entry in "
           "tls.certificates; empty: no TLS. SIGHUP reads the file again");
  tls.text("key", Type::kPath, "", "Private key of tls.certificate (PEM). SIGHUP reads the file again");
  tls.add("certificates",
          {.type = Type::kTables,
           .by_default = Rows{},
           .choices = {"certificate", "key"},
           .doc = "Further certificates, selected by the host name that the client asks for (SNI)"});
  tls.text("client_ca", Type::kPath, "", "CA certificates (PEM) for the verification of client certificates");
  tls.choice("client_auth", "none", {"none", "request", "require"},
             "Whether clients are asked for a certificate, or must present one");
  tls.choice("min_version", "1.2", {"1.2", "1.3"}, "Minimum TLS version");
  tls.duration("handshake_timeout", std::chrono::seconds(10), 1, kHour,
               "Maximum duration of a handshake; then the client is cut off");
}

void add_log(Schema& schema) {
  Section log(schema, "log");
  log.choice("level", "info", {"trace", "debug", "info", "warning", "error", "off"},
             "Minimum level of logged messages", true);
  log.choice("format", "console", {"console", "json"},
             "Lines that are easy to read, or one JSON object per line");
  log.text("file", Type::kPath, "stderr", "\"stderr\", or a file to append to. SIGHUP reopens the file");
  log.number("queue_lines", 8192, 16, 1'000'000, "lines",
             "Maximum number of lines, of 512 bytes on average, that wait for the writing thread; further "
             "lines are dropped and counted");
}

}  // namespace

Schema builtin_schema() {
  Schema schema;
  add_http(schema);
  add_tls(schema);
  Section shutdown(schema, "shutdown");
  shutdown.duration("timeout", http::ServerOptions{}.shutdown_timeout, 0, 24 * kHour,
                    "Time for requests in flight to finish at shutdown; then they are cut off");
  shutdown.duration("delay", std::chrono::seconds(0), 0, kHour,
                    "Time during which /readyz answers 503 before connections are refused");
  add_log(schema);
  Section admin(schema, "admin");
  admin.text(
      "listen", Type::kAddress, "",
      "Address on which /healthz, /readyz, /metrics and /debug are served, without TLS; empty: not served");
  Section metrics(schema, "metrics");
  metrics.boolean("enabled", true,
                  "Whether requests are counted and timed for /metrics, if admin.listen is set");
  Section runtime(schema, "runtime");
  runtime.number("maxprocs", 0, 0, 256, "processors",
                 "Maximum number of goroutines that run at once. 0: TUZA_MAXPROCS, otherwise the number of "
                 "CPUs allowed");
  runtime.number("max_threads", 10'000, 16, 65'536, "threads",
                 "Maximum number of threads. The process ends if it needs more");
  return schema;
}

}  // namespace tuza::config
