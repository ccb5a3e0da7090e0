// The code on docs/guide/sync.md.
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#define EXPECT_TRUE(condition) (void)(condition)
#define EXPECT_EQ(a, b) (void)((a) == (b))

namespace sync_page {

using namespace std::chrono_literals;

struct Job {};
struct Answer {};
struct Url {};
struct Page {};
struct User {
  std::string name;
};
void handle(const Job&) {}
void use(const Answer&) {}
void too_late() {}
void report() {}
void rotate_keys() {}
std::vector<std::string> files_below(const std::string& folder) { return {folder}; }
std::string render(const std::string& text) { return text; }
tuza::Result<void> fetch(const tuza::Context&, const Url&) { return {}; }
long sum(std::span<const long> numbers) { return static_cast<long>(numbers.size()); }

void channels() {
  //! [channels]
  tuza::Chan<Job> jobs{64};  // without a number: no buffer, sender and receiver meet
  tuza::WaitGroup workers;
  for (int i = 0; i < 8; ++i) {
    workers.go([&jobs] {
      for (auto& job : jobs) handle(job);  // until the channel is closed and empty
    });
  }
  jobs.send(Job{});
  jobs.close();
  workers.wait();
  //! [channels]
}

//! [make_chan]
tuza::SharedChan<std::string> walk(const std::string& folder) {
  auto paths = tuza::make_chan<std::string>(64);
  tuza::go([paths, folder] {
    for (auto& path : files_below(folder)) paths.send(std::move(path));
    paths.close();  // the last handle destroys the channel; only close() ends the loop below
  });
  return paths;
}

void print_below(const std::string& folder) {
  for (auto& path : walk(folder)) std::puts(path.c_str());
}
//! [make_chan]

//! [send_within]
tuza::Result<void> walk_within(const tuza::Context& ctx, const std::string& folder,
                               tuza::Chan<std::string>& paths) {
  for (auto& path : files_below(folder)) {
    // ctx.cause() if nobody receives any more, and the context ends.
    if (auto sent = paths.send(ctx, std::move(path)); !sent) return sent;
  }
  paths.close();
  return {};
}
//! [send_within]

void selecting(const tuza::Context& parent, tuza::Chan<Answer>& answers, tuza::Chan<Job>& jobs,
               const Job& job) {
  //! [select]
  auto [ctx, cancel] = tuza::with_timeout(parent, 2s);
  tuza::select(tuza::on_recv(answers,
                             [](std::optional<Answer> answer) {
                               if (answer) use(*answer);  // nullopt: closed and empty
                             }),
               tuza::on_send(jobs, job), tuza::on_done(ctx, [] { too_late(); }));
  //! [select]
}

void select_in_a_loop(tuza::Chan<Job>& jobs, tuza::Chan<int>& quit) {
  //! [select_loop]
  for (;;) {
    std::optional<Job> job;
    switch (tuza::select(tuza::on_recv(jobs, job), tuza::on_recv(quit))) {
      case 0:
        if (!job) return;
        handle(*job);
        break;
      case 1: return;
    }
  }
  //! [select_loop]
}

//! [context]
inline constexpr tuza::ContextKey<User> kUser{"user"};

tuza::Result<void> search(const tuza::Context& parent, tuza::Chan<Answer>& answers) {
  auto [ctx, cancel] = tuza::with_timeout(parent, 500ms);
  const auto answer = answers.recv(ctx);
  if (!answer) return std::unexpected(answer.error());  // ctx.cause(): a timeout, or what ended `parent`
  if (const User* user = ctx.value(kUser)) tuza::set_goroutine_name(user->name);
  return {};
}  // `cancel` ends ctx here: like `defer cancel()`
//! [context]

tuza::Result<void> errors(const tuza::Context& parent, const std::vector<Url>& urls) {
  //! [error_group]
  tuza::ErrorGroup group(parent);
  group.set_limit(8);  // eight at a time
  for (const Url& url : urls) {
    group.go(fetch, group.context(), std::cref(url));  // a function that returns Result<void>, or void
  }
  return group.wait();  // the first error; it has ended the context of the others
  //! [error_group]
}

long halves(std::span<const long> numbers) {
  //! [scope]
  long left = 0, right = 0;
  {
    tuza::Scope scope;
    scope.go([&] { left = sum(numbers.first(numbers.size() / 2)); });
    scope.go([&] { right = sum(numbers.subspan(numbers.size() / 2)); });
  }  // both have ended; an exception of theirs comes out here
  return left + right;
  //! [scope]
}

void results(const std::string& url) {
  //! [future]
  tuza::Future<std::string> page = tuza::async(render, url);
  const std::string text = std::move(page).get();  // waits; rethrows what the function threw

  static tuza::singleflight::Group<std::string, std::string> pages;
  const auto [shared_page, shared] = pages.call(url, [&] { return render(url); });  // one call for many
  //! [future]
}

tuza::Result<void> locks(const tuza::Context& ctx, std::map<int, int>& table, int key) {
  //! [locks]
  static tuza::Mutex mutex;
  {
    const std::scoped_lock lock(mutex);  // may be held across calls that park
    ++table[key];
  }
  if (auto locked = mutex.lock(ctx); !locked) return locked;  // gave up: the context has ended
  const std::scoped_lock adopted(std::adopt_lock, mutex);
  ++table[key];
  //! [locks]
  return {};
}

tuza::Result<std::string> render_large(const tuza::Context& ctx, const std::string& text) {
  //! [semaphore]
  static tuza::Semaphore megabytes(100);
  const auto needed = static_cast<std::int64_t>(text.size() >> 20) + 1;
  if (auto got = megabytes.acquire(ctx, needed); !got) return std::unexpected(got.error());
  std::string page = render(text);
  megabytes.release(needed);
  return page;
  //! [semaphore]
}

void timers(const tuza::Context& ctx, tuza::net::Conn& conn) {
  //! [timers]
  tuza::Ticker ticker(10s);
  tuza::DelayedCall watchdog = tuza::after_func(5min, [&] { conn.close(); });
  while (ticker.wait(ctx)) report();
  watchdog.stop();  // its destructor stops it, too

  tuza::after_func(1h, [] { rotate_keys(); }).detach();
  //! [timers]
}

tuza::Result<void> rates(const tuza::Context& ctx, tuza::rate::Limiter& limiter) {
  //! [rate]
  if (auto allowed = limiter.wait(ctx); !allowed) return allowed;
  //! [rate]
  return {};
}

struct Client {
  static tuza::Result<Client> dial(const tuza::Context& ctx, std::string_view address);
  tuza::Result<void> ping(const tuza::Context& ctx);
  tuza::Result<std::string> ask(const tuza::Context& ctx, std::string_view question);
  [[nodiscard]] bool in_transaction() const;
};

tuza::Result<std::string> resource_pool(const tuza::Context& ctx, std::string_view question) {
  //! [resource_pool]
  tuza::ResourcePool<Client> clients({
      .open = [](const tuza::Context& caller) { return Client::dial(caller, "db:7000"); },
      .check = [](const tuza::Context& caller, Client& client) { return client.ping(caller).has_value(); },
      .reset = [](Client& client) { return !client.in_transaction(); },
      .limits = {.open_max = 8, .idle_max = 4, .idle_timeout = 5min, .life_max = 1h},
  });

  tuza::Result<tuza::ResourcePool<Client>::Lease> client = clients.acquire(ctx);  // waits while 8 are in use
  if (!client) return std::unexpected(client.error());
  tuza::Result<std::string> answer = (*client)->ask(ctx, question);
  if (!answer) client->discard();  // perhaps in the middle of an answer: nobody else gets it
  return answer;                   // otherwise the end of the lease gives it back
  //! [resource_pool]
}

void pools(const std::string& text) {
  //! [pool]
  static tuza::Pool<std::string> buffers([] { return std::string(4096, '\0'); });
  auto buffer = buffers.get();  // one that was given back, or a new one; as it was left
  buffer->assign(text);         // given back when `buffer` is destroyed

  static tuza::GoroutineLocal<std::vector<int>> scratch;
  scratch->clear();  // this goroutine's own
  //! [pool]
}

class Cache {
 public:
  explicit Cache(std::chrono::hours life) : life_(life) {
    cleaner_.go([this] {
      while (tuza::sleep_for(end_.ctx(), life_)) values_.clear();
    });
  }
  ~Cache() {
    end_.cancel();
    cleaner_.wait();
  }
  void put(std::string key, std::string value) { values_.emplace(std::move(key), std::move(value)); }
  bool has(const std::string& key) const { return values_.contains(key); }

 private:
  std::chrono::hours life_;
  std::map<std::string, std::string> values_;
  tuza::CancellableContext end_ = tuza::with_cancel({});
  tuza::WaitGroup cleaner_;
};

void testing() {
  //! [testing]
  tuza::run([] {
    const tuza::testing::LeakCheck leaks;
    tuza::testing::FakeClock clock;
    {
      Cache cache(24h);  // starts a goroutine that empties it
      cache.put("key", "value");
      clock.advance(25h);  // takes microseconds
      EXPECT_TRUE(!cache.has("key"));
    }
    EXPECT_EQ(leaks.report(), "");  // otherwise one line per goroutine: its wait, name and creator
  });
  //! [testing]
}

}  // namespace sync_page
