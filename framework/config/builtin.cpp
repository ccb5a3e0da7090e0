// The keys that every program made with tuza::App has. conf/production.toml lists all of them.
#include <tuza/framework/config/schema.h>
#include <tuza/http/options.h>

#include <chrono>
#include <limits>
#include <utility>

namespace tuza::config {
namespace {

constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kSecond = 1000, kHour = 3'600'000;

class Section {
 public:
  Section(Schema& schema, std::string name) : schema_(schema), name_(std::move(name) + ".") {}

  void boolean(const char* name, bool standard, const char* doc) {
    add(name, {.type = Type::kBool, .standard = standard, .doc = doc});
  }
  void number(const char* name, std::size_t standard, std::int64_t min, std::int64_t max, const char* unit,
              const char* doc) {
    add_range(name, Type::kInt, standard, min, max, doc, unit);
  }
  void size(const char* name, std::size_t standard, std::int64_t min, std::int64_t max, const char* doc) {
    add_range(name, Type::kSize, standard, min, max, doc);
  }
  void duration(const char* name, std::chrono::milliseconds standard, std::int64_t min, std::int64_t max,
                const char* doc) {
    add_range(name, Type::kDuration, static_cast<std::size_t>(standard.count()), min, max, doc);
  }
  void text(const char* name, Type type, const std::string& standard, const char* doc) {
    add(name, {.type = type, .standard = standard, .doc = doc});
  }
  void choice(const char* name, const char* standard, List choices, const char* doc, bool reload = false) {
    add(name, {.type = Type::kChoice,
               .standard = std::string(standard),
               .choices = std::move(choices),
               .doc = doc,
               .reload = reload});
  }
  void add(const char* name, Key key) {
    key.name = name_ + name;
    schema_.add(std::move(key));
  }

 private:
  void add_range(const char* name, Type type, std::size_t standard, std::int64_t min, std::int64_t max,
                 const char* doc, const char* unit = "") {
    add(name, {.type = type,
               .standard = static_cast<std::int64_t>(standard),
               .min = min,
               .max = max,
               .unit = unit,
               .doc = doc});
  }

  Schema& schema_;
  std::string name_;
};

void add_http(Schema& schema) {
  const http::ServerOptions standard;
  Section http(schema, "http");
  http.add("listen", {.type = Type::kAddresses,
                      .standard = List{"127.0.0.1:8080"},
                      .doc = "Where to serve; sockets that systemd hands over go before it"});
  http.size("request_line_max", standard.request_line_bytes_max, 64, kMiB, "A longer request line: 414");
  http.size("head_max", standard.head_bytes_max, 256, kMiB, "Request line and headers; more: 431");
  http.number("headers_max", standard.headers_max, 1, 256, "headers", "Maximum number of headers; more: 431");
  http.size("body_max", standard.body_bytes_max, 0, 1024 * kGiB,
            "Maximum size of a request body; larger: 413");
  http.size("chunk_overhead_max", standard.chunk_overhead_bytes_max, 16, kMiB,
            "Sizes, extensions and trailers of a chunked body without data between them; more: 400");
  http.duration("header_timeout", standard.header_timeout, 1, kHour,
                "From the first byte of a request to its last header; else 408");
  http.duration("idle_timeout", standard.idle_timeout, 1, 24 * kHour,
                "Between requests of a connection, and before the first; then it is closed");
  http.duration("body_timeout", standard.body_timeout, 1, 24 * kHour,
                "For a request body, beside what http.body_rate_min allows; else 408");
  http.size("body_rate_min", standard.body_rate_min_bytes_per_second, 1, kGiB,
            "Minimum rate of a request body, per second, after http.body_timeout");
  http.duration("skip_timeout", standard.skip_timeout, 0, kHour,
                "For what a handler has left of a body, to keep the connection");
  http.duration("write_timeout", standard.write_timeout, 1, 24 * kHour,
                "A client that takes nothing of a response for so long is cut off");
  http.number("max_connections", 0, 0, 10'000'000, "connections",
              "Open at once, per listener; others wait. 0: as many as there are descriptors, less 32");
  http.text("server_name", Type::kString, standard.server_name,
            "The Server header of responses; empty: none");
  http.boolean("access_log", false, "A log line per request");
}

void add_tls(Schema& schema) {
  Section tls(schema, "tls");
  tls.text("certificate", Type::kPath, "",
           "Certificate chain, PEM, for clients that ask for no name in tls.certificates; empty: no TLS. "
           "SIGHUP reads it "
           "again");
  tls.text("key", Type::kPath, "", "Private key of tls.certificate, PEM. SIGHUP reads it again");
  tls.add("certificates",
          {.type = Type::kTables,
           .standard = Rows{},
           .choices = {"certificate", "key"},
           .doc = "More certificates, chosen by the host name that the client asks for (SNI)"});
  tls.text("client_ca", Type::kPath, "",
           "CA certificates, PEM, that client certificates are checked against");
  tls.choice("client_auth", "none", {"none", "request", "require"},
             "Whether clients must show a certificate");
  tls.choice("min_version", "1.2", {"1.2", "1.3"}, "The lowest version of TLS that is spoken");
  tls.duration("handshake_timeout", std::chrono::seconds(10), 1, kHour,
               "A client that is slower with its handshake is cut off");
}

void add_log(Schema& schema) {
  Section log(schema, "log");
  log.choice("level", "info", {"trace", "debug", "info", "warning", "error", "off"},
             "Minimum level of logged messages", true);
  log.choice("format", "console", {"console", "json"}, "Lines for people, or an object per line");
  log.text("file", Type::kPath, "stderr", "\"stderr\", or a file to append to, which SIGHUP opens again");
  log.number("queue_lines", 8192, 16, 1'000'000, "lines",
             "Lines, of 512 bytes on average, that wait for the writing thread; further ones are dropped and "
             "counted");
}

}  // namespace

Schema builtin_schema() {
  Schema schema;
  add_http(schema);
  add_tls(schema);
  Section shutdown(schema, "shutdown");
  shutdown.duration("timeout", http::ServerOptions{}.shutdown_timeout, 0, 24 * kHour,
                    "For requests in flight when the program ends; then they are cut off");
  shutdown.duration("delay", std::chrono::seconds(0), 0, kHour,
                    "/readyz says 503 for so long before connections are refused");
  add_log(schema);
  Section admin(schema, "admin");
  admin.text("listen", Type::kAddress, "",
             "Where /healthz, /readyz, /metrics and /debug are served, without TLS; empty: nowhere");
  Section metrics(schema, "metrics");
  metrics.boolean("enabled", true, "Count and time requests for /metrics, if there is admin.listen");
  Section runtime(schema, "runtime");
  runtime.number("maxprocs", 0, 0, 256, "processors",
                 "Goroutines that run at once. 0: TUZA_MAXPROCS, else the CPUs allowed");
  runtime.number("max_threads", 10'000, 16, 65'536, "threads",
                 "Maximum number of threads; the process ends if it needs more");
  return schema;
}

}  // namespace tuza::config
