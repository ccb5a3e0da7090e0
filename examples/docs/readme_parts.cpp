// The parts of programs that README.md shows, with what stands around them: the test `readme` looks for them
// here, so that what is shown compiles.
#include <tuza/framework/app.h>
#include <tuza/http/server.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/wait_group.h>

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

struct Row {};
struct Job {};
struct Result {};
struct Database {};

long query(Database&, const std::string& text) { return static_cast<long>(text.size()); }
void add(const Row&) {}
void handle(const Job&) {}
void use(const std::optional<Result>&) {}
void sent() {}
void too_late() {}

[[maybe_unused]] void settings(tuza::App& app) {
  const auto database = app.setting("notes.database", "notes.db", "Where the notes are kept");
  const auto patience = app.setting("notes.patience", 2s, "For a locked database", {100ms, 1min});
}

[[maybe_unused]] long calls_that_block(Database& database, const std::string& text, int fd) {
  // Others may run meanwhile. The P is kept if the call is short; afterwards it is waited for.
  const long rows = tuza::blocking([&] { return query(database, text); });

  // Known to take milliseconds: the P is given away at once.
  const int status = tuza::blocking(tuza::CallLength::kLong, [&] { return std::system("make"); });

  std::string buffer(4096, '\0');
  long got = 0;
  int error = 0;
  {
    const tuza::BlockingCall call;  // the same as a scope
    got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0) error = errno;  // in here: the end of the scope may change the thread
  }
  return rows + status + got + error;
}

[[maybe_unused]] tuza::Result<std::string> files() {
  // Files, directories and paths do it by themselves. Errors are values.
  auto file = tuza::File::open("/etc/motd");
  if (!file) return std::unexpected(file.error());
  tuza::Result<std::string> text = file->read_all();
  return text;
}

[[maybe_unused]] void loops_and_locks(const std::vector<Row>& rows, std::mutex& table_mutex,
                                      std::map<int, int>& table, int key) {
  for (const Row& row : rows) {
    add(row);
    tuza::checkpoint();  // a turn for others, if it is time
  }

  {
    const tuza::NoPreempt no_suspension;  // everybody needs this lock
    const std::scoped_lock lock(table_mutex);
    ++table[key];
  }
}

[[maybe_unused]] tuza::Result<void> tls_server(tuza::http::Router router) {
  tuza::net::TlsServerOptions options{.certificates = {{"cert.pem", "key.pem"}}, .alpn = {"http/1.1"}};
  auto tls = tuza::net::TlsServer::load(options);  // the error names the file, and what is wrong with it
  if (!tls) return std::unexpected(tls.error());
  auto listener = tuza::net::listen("tcp", ":443").value();  // or "unix", "/run/app.sock"
  listener.use_tls(*tls);
  tuza::http::Server server(std::move(router));
  if (auto listening = server.listen(std::move(listener)); !listening) return listening;
  return server.serve();  // elsewhere, on SIGHUP: (*tls)->reload()
}

[[maybe_unused]] void waiting(const tuza::Context& request, tuza::Chan<Result>& results, const Job& job) {
  tuza::Chan<Job> jobs{64};
  tuza::WaitGroup workers;
  for (int i = 0; i < 8; ++i)
    workers.go([&] {
      for (auto next : jobs) handle(next);
    });

  auto [ctx, cancel] = tuza::with_timeout(request, 2s);
  tuza::select(tuza::on_recv(results, [&](std::optional<Result> result) { use(result); }),  // nullopt: closed
               tuza::on_send(jobs, job, [] { sent(); }), tuza::on_done(ctx, [] { too_late(); }));
  // Also: on_ready(future), on_fire(timer), after(1s, ...), otherwise(...)
  workers.wait();
}

}  // namespace
