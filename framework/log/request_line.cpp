#include <tuza/framework/log/request_line.h>

#include <tuza/framework/log/current.h>
#include <tuza/http/middleware/access_log.h>
#include <tuza/http/middleware/request_id.h>
#include <tuza/sched/rt/base/clock.h>

#include <string_view>

namespace tuza::logging {
namespace {

// Longer values are cut.
constexpr std::size_t kTargetBytesMax = 2048;
constexpr std::size_t kAgentBytesMax = 512;

struct Answered {
  std::string_view remote, method, target, agent, pattern, id;
  std::uint64_t status, bytes, duration_us;
};

void add_json_text(Line& line, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  line.literal(",\"");
  line.literal(name);
  line.literal("\":");
  line.quoted(text);
}

void add_json(Line& line, const Answered& request) {
  line.literal(R"(,"event":"request","remote":)");
  line.quoted(request.remote);  // the name of a Unix socket may contain any byte
  line.literal(R"(,"method":")");
  line.literal(request.method);  // one of the parser's method names
  line.literal(R"(","target":)");
  line.quoted(request.target);
  add_json_text(line, "pattern", request.pattern);
  line.literal(R"(,"status":)");
  line.number(request.status);
  line.literal(R"(,"bytes":)");
  line.number(request.bytes);
  line.literal(R"(,"duration_us":)");
  line.number(request.duration_us);
  add_json_text(line, "request_id", request.id);
  add_json_text(line, "user_agent", request.agent);
}

void add_console(Line& line, const Answered& request) {
  line.literal(" ");
  line.escaped(request.remote);
  line.literal(" \"");
  line.literal(request.method);
  line.literal(" ");
  line.in_quotes(request.target);
  line.literal("\" ");
  line.number(request.status);
  line.literal(" ");
  line.number(request.bytes);
  line.literal("B ");
  line.number(request.duration_us);
  line.literal("us ");
  line.quoted(request.agent);
  if (request.id.empty()) return;
  line.literal(" ");
  line.escaped(request.id);
}

}  // namespace

void log_request(const http::Request& request, const http::ResponseWriter& response, int status,
                 std::int64_t begun_ns, std::int64_t ended_ns) {
  LineQueue* const queue = current_queue();
  if (queue == nullptr) return;
  http::set_logged(request);
  const http::RequestId* const id = request.get(http::kRequestId);
  const Answered answered{.remote = request.remote(),
                          .method = request.method_name(),
                          .target = request.target().substr(0, kTargetBytesMax),
                          .agent = request.header("User-Agent").value_or("").substr(0, kAgentBytesMax),
                          .pattern = request.pattern(),
                          .id = id != nullptr ? id->id() : std::string_view(),
                          .status = static_cast<std::uint64_t>(status),
                          .bytes = response.bytes_written(),
                          .duration_us = static_cast<std::uint64_t>(ended_ns - begun_ns) / 1000};
  Line line(queue->form(), wall_ns_at(ended_ns), "info");
  if (queue->form() == Form::kJson) {
    add_json(line, answered);
  } else {
    add_console(line, answered);
  }
  queue->push(line.finish());
}

void log_refused(const http::RefusedRequest& refused) {
  LineQueue* const queue = current_queue();
  if (queue == nullptr || !wants(LogLevel::kInfo)) return;
  const std::string_view request_line = refused.request_line.substr(0, kTargetBytesMax);
  Line line(queue->form(), wall_ns_at(rt::now_ns()), "info");
  if (queue->form() == Form::kJson) {
    line.literal(R"(,"event":"refused","remote":)");
    line.quoted(refused.remote);
    add_json_text(line, "request", request_line);
    line.literal(R"(,"status":)");
    line.number(static_cast<std::uint64_t>(refused.status));
    add_json_text(line, "reason", refused.reason);
  } else {
    line.literal(" ");
    line.escaped(refused.remote);
    line.literal(" ");
    line.quoted(request_line);
    line.literal(" ");
    line.number(static_cast<std::uint64_t>(refused.status));
    line.literal(" refused: ");
    line.escaped(refused.reason);
  }
  queue->push(line.finish());
}

}  // namespace tuza::logging
