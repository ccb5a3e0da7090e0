// The code on docs/guide/go-programmers.md.
#include <tuza/http.h>
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <signal.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace go_programmers_page {

using namespace std::chrono_literals;
using tuza::http::Request;
using tuza::http::ResponseWriter;

struct Job {};
struct Url {};
struct Table {};
struct User {
  std::string name;
};
struct Shard {
  void compact() {}
};
void work(const Job&) {}
void greet(const User&) {}
void idle() {}
void report() {}
void use(const std::string&) {}
Table load_table() { return {}; }
tuza::Result<void> fetch(const tuza::Context&, const Url&) { return {}; }
std::string render(const std::string& text) { return text; }
long call_c_library() { return 0; }

tuza::Result<std::string> program(const tuza::Context& ctx) {
  //! [exec]
  TUZA_TRY(auto git, tuza::Process::output(ctx, {"git", "status", "--short"}, {.folder = "/srv/app"}));
  if (!git.status.ok()) return std::unexpected(tuza::errorf("git: {}", git.err));
  //! [exec]
  return git.out;
}

void start(const Job& job) {
  //! [start]
  tuza::go([job] { work(job); });  // a copy: the goroutine may outlive this scope
  //! [start]
}

void wait_for_all(std::vector<Shard>& shards) {
  //! [wait]
  tuza::WaitGroup group;
  for (Shard& shard : shards) {
    group.go([&shard] { shard.compact(); });
  }
  group.wait();
  //! [wait]
}

void channel() {
  //! [channel]
  tuza::Chan<Job> jobs{64};
  tuza::WaitGroup worker;
  worker.go([&jobs] {
    for (auto& job : jobs) work(job);
  });
  jobs.send(Job{});
  jobs.close();
  worker.wait();  // the channel lives on this stack
  //! [channel]
}

void receive(tuza::Chan<Job>& jobs) {
  //! [receive]
  std::optional<Job> job = jobs.recv();
  if (!job) return;  // closed and empty
  work(*job);
  //! [receive]
}

//! [direction]
void produce(tuza::SendChan<int> out);
void consume(tuza::RecvChan<int> in);
//! [direction]

void selecting(tuza::Chan<Job>& jobs) {
  //! [select]
  tuza::select(tuza::on_recv(jobs,
                             [](std::optional<Job> job) {
                               if (job) work(*job);
                             }),
               tuza::on_timeout(1s, [] { idle(); }));
  //! [select]
}

void without_waiting(tuza::Chan<Job>& jobs, Job job) {
  //! [default]
  if (!jobs.try_send(std::move(job))) {
    // full: `job` is as it was
  }
  //! [default]
}

void select_loop(const tuza::Context& ctx, tuza::Chan<Job>& jobs) {
  //! [select_loop]
  for (;;) {
    std::optional<Job> job;
    switch (tuza::select(tuza::on_done(ctx), tuza::on_recv(jobs, job))) {
      case 0: return;
      case 1:
        if (!job) return;
        work(*job);
    }
  }
  //! [select_loop]
}

tuza::Result<void> deadline(const tuza::Context& parent, const Url& url) {
  //! [context]
  auto [ctx, cancel] = tuza::with_timeout(parent, 2s);
  return fetch(ctx, url);
  //! [context]
}

//! [value]
inline constexpr tuza::ContextKey<User> kUser{"user"};

void greet_user(const tuza::Context& parent, User user) {
  const tuza::Context ctx = tuza::with_value(parent, kUser, std::move(user));
  if (const User* found = ctx.value(kUser)) greet(*found);
}
//! [value]

tuza::Result<void> error_group(const tuza::Context& parent, const std::vector<Url>& urls) {
  //! [errgroup]
  tuza::ErrorGroup group(parent);
  group.set_limit(8);
  for (const Url& url : urls) {
    group.go([&url, ctx = group.context()] { return fetch(ctx, url); });
  }
  return group.wait();
  //! [errgroup]
}

class Counter {
 public:
  //! [mutex]
  void add(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    ++counts_[key];
  }
  //! [mutex]

 private:
  tuza::Mutex mutex_;
  std::map<std::string, int> counts_;
};

//! [once]
Table& table() {
  static tuza::OnceValue made([] { return load_table(); });
  return made();
}
//! [once]

void ticking(const tuza::Context& ctx) {
  //! [ticker]
  tuza::Ticker ticker(10s);
  while (ticker.wait(ctx)) report();
  //! [ticker]
}

//! [error]
tuza::Result<std::string> first_line(const std::string& path) {
  TUZA_TRY(auto file, tuza::File::open(path));  // or returns "open notes.txt: Permission denied"
  TUZA_TRY(auto text, file.read_all());
  return text.substr(0, text.find('\n'));
}
//! [error]

bool is_missing(const tuza::Error& error) {
  //! [error_is]
  if (error.is(std::errc::no_such_file_or_directory)) return true;
  if (error.timeout()) return false;
  //! [error_is]
  return false;
}

tuza::Result<void> wrap(const std::string& url, const tuza::Error& error) {
  //! [errorf]
  return std::unexpected(tuza::errorf("get {}: {}", url, error));
  //! [errorf]
}

tuza::Result<void> join(const std::vector<tuza::Error>& errors) {
  //! [join]
  return tuza::join_errors(errors);
  //! [join]
}

void recover(const Job& job) {
  //! [recover]
  try {
    work(job);
  } catch (const std::exception& e) {
    tuza::log_line(tuza::LogLevel::kError, e.what());
  }
  //! [recover]
}

tuza::Result<void> listening() {
  //! [listen]
  auto listener = tuza::net::listen("tcp", ":7000");
  if (!listener) return std::unexpected(listener.error());
  return tuza::net::serve(*listener, [](tuza::net::Conn& conn) {
    std::array<char, 4096> buffer;
    while (auto n = conn.read(std::span(buffer))) {
      if (*n == 0 || !conn.write_all({buffer.data(), *n})) return;
    }
  });
  //! [listen]
}

tuza::Result<void> dialing() {
  //! [dial]
  auto conn = tuza::net::dial("tcp", "127.0.0.1:7000", tuza::net::time_after_now(2s));
  if (!conn) return std::unexpected(conn.error());
  conn->set_read_deadline(tuza::net::time_after_now(5s));
  //! [dial]
  return {};
}

int http() {
  //! [http]
  return tuza::run([] {
    tuza::http::Router router;
    router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
      res.text("item " + req.path_value<std::string>("id") + "\n");
    });
    return tuza::http::listen_and_serve(":8080", std::move(router));
  });
  //! [http]
}

//! [body]
void echo(Request& req, ResponseWriter& res) {
  const auto body = req.body();  // limit: ServerOptions::body_bytes_max
  if (!body) return;             // the server answers 400, 408 or 413
  res.send("text/plain", *body);
}
//! [body]

//! [middleware]
tuza::http::Middleware logged() {
  return [](tuza::http::Handler next) -> tuza::http::Handler {
    return [next = std::move(next)](Request& req, ResponseWriter& res) {
      next(req, res);
      tuza::log_line(tuza::LogLevel::kInfo, req.path());
    };
  };
}
//! [middleware]

//! [request_context]
void slow(Request& req, ResponseWriter& res) {
  const auto [ctx, cancel] = tuza::with_timeout(req.context(), 2s);
  if (auto fetched = fetch(ctx, Url{}); !fetched) return res.error(504);
  res.text("done\n");
}
//! [request_context]

tuza::Result<std::string> read_page(const tuza::Context& ctx, tuza::http::Client& client,
                                    std::string_view url) {
  //! [client]
  TUZA_TRY(auto res, client.get(ctx, url));
  TUZA_TRY(std::string body, res.body());  // at most 8 MiB
  //! [client]
  return body;
}

void gateway(tuza::http::Router& router) {
  //! [reverse-proxy]
  router.handle("/api/", tuza::http::ReverseProxy({.upstreams = {"http://10.0.0.1:8080"}}));
  //! [reverse-proxy]
}

void wait_for_signal() {
  //! [signal]
  auto signals = tuza::net::SignalSet::open({SIGTERM, SIGINT});
  if (signals) (void)signals->wait();
  //! [signal]
}

long locked_thread() {
  //! [locked]
  tuza::lock_os_thread();
  const long result = call_c_library();
  tuza::unlock_os_thread();
  //! [locked]
  return result;
}

void pool(const std::string& text) {
  //! [pool]
  static tuza::Pool<std::string> buffers;
  auto buffer = buffers.get();
  buffer->assign(text);
  use(*buffer);  // goes back at the end of the scope
  //! [pool]
}

std::string singleflight(const std::string& key) {
  //! [singleflight]
  static tuza::singleflight::Group<std::string, std::string> pages;
  auto [page, shared] = pages.call(key, [&] { return render(key); });
  //! [singleflight]
  return page;
}

void procs() {
  //! [procs]
  const int before = tuza::set_max_procs(4);
  std::printf("%d Ps before, %zu goroutines\n", before, tuza::num_goroutine());
  //! [procs]
}

void testing() {
  //! [testing]
  tuza::run([] {
    const tuza::testing::LeakCheck leaks;  // aborts if goroutines are left
    tuza::testing::FakeClock clock;
    const auto begun = tuza::now();
    tuza::sleep_for(1h);  // returns at once: nobody else can run
    if (tuza::now() - begun != 1h) std::abort();
  });
  //! [testing]
}

}  // namespace go_programmers_page
