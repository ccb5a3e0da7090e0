#include <tuza/http/middleware/access_log.h>

#include <tuza/http/middleware/basic_auth.h>
#include <tuza/http/middleware/detail/log_fields.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/middleware/request_id.h>
#include <tuza/http/serve/exchange.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

using std::chrono::system_clock;
using namespace detail;

// Longer texts are cut.
constexpr std::size_t kTargetBytesMax = 2048;
constexpr std::size_t kTextBytesMax = 512;

struct Answered {
  const Request& request;
  int status;
  std::uint64_t bytes;
  std::chrono::microseconds duration;
  system_clock::time_point ended;

  [[nodiscard]] std::string_view target() const { return request.target().substr(0, kTargetBytesMax); }
  [[nodiscard]] std::string_view field(std::string_view name) const {
    return request.header(name).value_or("").substr(0, kTextBytesMax);
  }
};

std::string apache_line(const Answered& answered, bool combined) {
  const Request& request = answered.request;
  std::string line;
  line.reserve(256);
  append_word(line, without_port(request.remote()));
  line += " - ";
  const std::string* const user = request.get(kBasicUser);
  append_word(line, user != nullptr ? std::string_view(*user).substr(0, kTextBytesMax) : std::string_view());
  line += ' ';
  append_apache_time(line, answered.ended);
  line.append(" \"").append(request.method_name()).append(" ");
  append_log_escaped(line, answered.target());
  line.append(request.version_minor() == 0 ? " HTTP/1.0\" " : " HTTP/1.1\" ");
  append_decimal(line, static_cast<std::uint64_t>(answered.status));
  line += ' ';
  if (answered.bytes == 0) {
    line += '-';
  } else {
    append_decimal(line, answered.bytes);
  }
  if (combined) {
    append_quoted(line, answered.field("Referer"));
    append_quoted(line, answered.field("User-Agent"));
  }
  return line += '\n';
}

std::string json_line(const Answered& answered) {
  const Request& request = answered.request;
  std::string line = R"({"time":")";
  line.reserve(512);
  append_json_time(line, answered.ended);
  line += '"';
  append_json_text(line, "remote", request.remote());
  append_json_text(line, "method", request.method_name());
  append_json_text(line, "target", answered.target());
  append_json_text(line, "pattern", request.pattern());
  append_json_number(line, "status", static_cast<std::uint64_t>(answered.status));
  append_json_number(line, "bytes", answered.bytes);
  append_json_number(line, "duration_us", static_cast<std::uint64_t>(answered.duration.count()));
  if (const RequestId* const id = request.get(kRequestId)) append_json_text(line, "request_id", id->id());
  if (const std::string* const user = request.get(kBasicUser)) {
    append_json_text(line, "user", std::string_view(*user).substr(0, kTextBytesMax));
  }
  append_json_text(line, "referer", answered.field("Referer"));
  append_json_text(line, "user_agent", answered.field("User-Agent"));
  return line += "}\n";
}

std::string apache_line(const RefusedRequest& refused, bool combined) {
  std::string line;
  append_word(line, without_port(refused.remote));
  line += " - - ";
  append_apache_time(line, system_clock::now());
  append_quoted(line, refused.request_line.substr(0, kTargetBytesMax));
  line += ' ';
  append_decimal(line, static_cast<std::uint64_t>(refused.status));
  line += combined ? " - \"-\" \"-\"\n" : " -\n";
  return line;
}

std::string json_line(const RefusedRequest& refused) {
  std::string line = R"({"time":")";
  append_json_time(line, system_clock::now());
  line += '"';
  append_json_text(line, "remote", refused.remote);
  append_json_text(line, "request", refused.request_line.substr(0, kTargetBytesMax));
  append_json_number(line, "status", static_cast<std::uint64_t>(refused.status));
  append_json_text(line, "reason", refused.reason);
  return line += "}\n";
}

}  // namespace

Middleware access_log(AccessLogOptions options) {
  return [options = std::make_shared<const AccessLogOptions>(std::move(options))](Handler next) -> Handler {
    if (!options->write) return next;
    return [options, next = std::move(next)](Request& request, ResponseWriter& response) {
      const auto begun = std::chrono::steady_clock::now();
      set_logged(request);
      observe(next, request, response, [&](int status) {
        const Answered answered{.request = request,
                                .status = status,
                                .bytes = response.bytes_written(),
                                .duration = std::chrono::duration_cast<std::chrono::microseconds>(
                                    std::chrono::steady_clock::now() - begun),
                                .ended = system_clock::now()};
        options->write(options->format == AccessLogFormat::kJson
                           ? json_line(answered)
                           : apache_line(answered, options->format == AccessLogFormat::kCombined));
      });
    };
  };
}

void set_logged(const Request& request) { request.exchange().set_logged(); }

std::function<void(const RefusedRequest&)> refused_log(AccessLogOptions options) {
  if (!options.write) return {};
  return [options = std::move(options)](const RefusedRequest& refused) {
    options.write(options.format == AccessLogFormat::kJson
                      ? json_line(refused)
                      : apache_line(refused, options.format == AccessLogFormat::kCombined));
  };
}

}  // namespace tuza::http
