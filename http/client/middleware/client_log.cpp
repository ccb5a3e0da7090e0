#include <tuza/http/client/middleware/client_log.h>

#include <tuza/http/middleware/detail/log_fields.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/sched/log.h>
#include <tuza/sched/time/clock.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace tuza::http {
namespace {

// Longer texts are cut.
constexpr std::size_t kUrlBytesMax = 2048;
constexpr std::size_t kErrorBytesMax = 512;

// "a=***&b=1": a name without a value is one, and may be a secret itself.
std::string masked_query(std::string_view query, const std::vector<std::string>& shown) {
  std::string masked;
  while (true) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    if (std::ranges::find(shown, name) != shown.end()) {
      masked += item;
    } else if (equals != std::string_view::npos) {
      masked.append(name).append("=***");
    } else if (!item.empty()) {
      masked += "***";
    }
    if (end == query.size()) return masked;
    masked += '&';
    query.remove_prefix(end + 1);
  }
}

std::string shown_url(const Url& url, const std::vector<std::string>& shown) {
  const std::string_view target = url.target;
  const std::size_t query = std::min(target.find('?'), target.size());
  std::string text = url.origin();
  text += target.substr(0, query);
  if (query < target.size()) text.append("?").append(masked_query(target.substr(query + 1), shown));
  if (text.size() > kUrlBytesMax) text.resize(kUrlBytesMax);
  return text;
}

struct Called {
  Method method;
  std::string url;
  int status;         // 0: none
  std::string error;  // if there is no status
  std::chrono::microseconds duration;
};

std::string text_line(const Called& called) {
  std::string line(name(called.method));
  line += ' ';
  detail::append_log_escaped(line, called.url);
  line += ' ';
  if (called.status == 0) {
    line += '-';
  } else {
    detail::append_decimal(line, static_cast<std::uint64_t>(called.status));
  }
  line += ' ';
  detail::append_decimal(line, static_cast<std::uint64_t>(called.duration.count()));
  line += "us";
  if (called.status == 0) detail::append_quoted(line, called.error);
  return line += '\n';
}

std::string called_json_line(const Called& called) {
  std::string line = R"({"time":")";
  detail::append_json_time(line, std::chrono::system_clock::now());
  line += '"';
  detail::append_json_text(line, "method", name(called.method));
  detail::append_json_text(line, "url", called.url);
  if (called.status == 0) {
    detail::append_json_text(line, "error", called.error);
  } else {
    detail::append_json_number(line, "status", static_cast<std::uint64_t>(called.status));
  }
  detail::append_json_number(line, "duration_us", static_cast<std::uint64_t>(called.duration.count()));
  return line += "}\n";
}

// Lines of the runtime's log have no line end.
void to_runtime_log(std::string_view line) {
  line.remove_suffix(1);
  log_line(LogLevel::kInfo, line);
}

}  // namespace

ClientMiddleware client_log(ClientLogOptions options) {
  if (!options.write) options.write = to_runtime_log;
  return [options = std::make_shared<const ClientLogOptions>(std::move(options))](
             const Context& ctx, ClientRequest& request, const ClientNext& next) {
    const auto begun = now();
    Result<ClientResponse> response = next(ctx, request);
    const Called called{
        .method = request.method(),
        .url = request.url() ? shown_url(*request.url(), options->shown) : std::string(),
        .status = response ? response->status() : 0,
        .error = response ? std::string() : response.error().message().substr(0, kErrorBytesMax),
        .duration = std::chrono::duration_cast<std::chrono::microseconds>(now() - begun)};
    options->write(options->format == ClientLogFormat::kJson ? called_json_line(called) : text_line(called));
    return response;
  };
}

}  // namespace tuza::http
