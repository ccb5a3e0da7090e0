// The code on docs/guide/processes.md.
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace processes_page {

using namespace std::chrono_literals;

void handle(std::string_view) {}

//! [output]
tuza::Result<std::string> last_commit(const tuza::Context& ctx, const std::string& folder) {
  TUZA_TRY(auto git, tuza::Process::output(ctx, {"git", "log", "-1", "--format=%H"}, {.folder = folder}));
  if (!git.status.ok()) return std::unexpected(tuza::errorf("git: {}: {}", git.status.message(), git.err));
  return git.out;
}
//! [output]

//! [input]
tuza::Result<std::string> sorted(std::string text) {
  TUZA_TRY(auto sort, tuza::Process::output({"sort", "-u"}, {.input = std::move(text)}));
  return sort.out;
}
//! [input]

//! [start]
tuza::Result<void> follow(const tuza::Context& ctx, const std::string& path) {
  TUZA_TRY(auto tail, tuza::Process::start(ctx, {"tail", "-f", path}, {.out = tuza::Stdio::pipe()}));
  tuza::net::BufReader in(tail.out());
  for (auto line : in.lines()) handle(line);  // ends with the pipe: when ctx has ended the child
  TUZA_TRY(auto status, tail.wait());
  if (status.ok() || ctx.done()) return {};
  return std::unexpected(tuza::errorf("tail: {}", status.message()));
}
//! [start]

//! [both]
tuza::Result<std::string> translate(tuza::Process& worker, tuza::net::BufReader& answers,
                                    std::string_view line) {
  TUZA_TRY(worker.in().write_all(std::string(line) + "\n"));
  TUZA_TRY(auto answer, answers.read_line());
  return std::string(answer);
}
//! [both]

tuza::Result<void> helper() {
  //! [helper]
  TUZA_TRY(auto redis,
           tuza::Process::start({"redis-server", "--port", "7999"}, {.own_group = true, .grace = 10s}));
  //! [helper]
  (void)redis;
  return {};
}

}  // namespace processes_page
