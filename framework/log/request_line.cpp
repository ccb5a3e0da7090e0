#include <tuza/framework/log/request_line.h>

#include <tuza/framework/log/current.h>

#include <string_view>

namespace tuza::logging {
namespace {

// Longer values are cut.
constexpr std::size_t kTargetBytesMax = 2048;
constexpr std::size_t kAgentBytesMax = 512;

struct Answered {
  std::string_view remote, method, target, agent;
  std::uint64_t status, bytes, duration_us;
};

void add_json(Line& line, const Answered& request) {
  line.literal(R"(,"event":"request","remote":")");
  line.escaped(request.remote);  // the name of a Unix socket may contain any byte
  line.literal(R"(","method":")");
  line.literal(request.method);  // one of the parser's method names
  line.literal(R"(","target":")");
  line.escaped(request.target);
  line.literal(R"(","status":)");
  line.number(request.status);
  line.literal(R"(,"bytes":)");
  line.number(request.bytes);
  line.literal(R"(,"duration_us":)");
  line.number(request.duration_us);
  if (request.agent.empty()) return;
  line.literal(R"(,"user_agent":")");
  line.escaped(request.agent);
  line.literal("\"");
}

void add_console(Line& line, const Answered& request) {
  line.literal(" ");
  line.escaped(request.remote);
  line.literal(" \"");
  line.literal(request.method);
  line.literal(" ");
  line.escaped(request.target);
  line.literal("\" ");
  line.number(request.status);
  line.literal(" ");
  line.number(request.bytes);
  line.literal("B ");
  line.number(request.duration_us);
  line.literal("us \"");
  line.escaped(request.agent);
  line.literal("\"");
}

}  // namespace

void log_request(const http::Request& request, const http::ResponseWriter& response, int status,
                 std::int64_t begun_ns, std::int64_t ended_ns) {
  LineQueue* const queue = current_queue();
  if (queue == nullptr) return;
  const Answered answered{.remote = request.remote(),
                          .method = request.method_name(),
                          .target = request.target().substr(0, kTargetBytesMax),
                          .agent = request.header("User-Agent").value_or("").substr(0, kAgentBytesMax),
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

}  // namespace tuza::logging
