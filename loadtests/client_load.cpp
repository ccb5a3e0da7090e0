// Goroutines that ask one server for one path with an http::Client, one request after the other, and check each answer.
//
// Prints one line of JSON: the requests of the measured time, and the CPU time that this process has used for them.
#include <sys/resource.h>
#include <tuza/http/client.h>
#include <tuza/sched/go.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using tuza::Context;
using tuza::Result;

constexpr auto kWarmUp = 1s;

struct Used {
  double user_s, system_s;
};

Used cpu_time() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const struct timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

// A counter that all share would be a part of what is measured.
struct alignas(64) Asker {
  std::atomic<std::uint64_t> answered = 0;
};

class Load {
 public:
  Load(std::string url, std::string body, std::size_t connections)
      : url_(std::move(url)),
        body_(std::move(body)),
        askers_(connections),
        client_({.idle_per_origin_max = connections}) {}

  void ask(Asker& asker) {
    while (!ends_.load(std::memory_order_relaxed)) {
      auto res = client_.get(Context::background(), url_);
      const Result<std::string> body = res ? res->body() : std::unexpected(res.error());
      if (!body || res->status() != 200 || *body != body_) {
        std::fprintf(stderr, "client_load: %s\n", body ? "a wrong answer" : body.error().message().c_str());
        std::_Exit(1);
      }
      asker.answered.store(asker.answered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }
  std::uint64_t answered() const {
    std::uint64_t sum = 0;
    for (const Asker& asker : askers_) sum += asker.answered.load(std::memory_order_relaxed);
    return sum;
  }
  void run(std::chrono::seconds length) {
    tuza::WaitGroup group;
    for (Asker& asker : askers_) group.go([this, &asker] { ask(asker); });
    tuza::sleep_for(kWarmUp);
    const Used before = cpu_time();
    const std::uint64_t answered_before = answered();
    const auto start = tuza::now();
    tuza::sleep_for(length);
    const Used after = cpu_time();
    const std::uint64_t requests = answered() - answered_before;
    const double seconds = std::chrono::duration<double>(tuza::now() - start).count();
    std::printf("{\"requests\": %llu, \"seconds\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f}\n",
                static_cast<unsigned long long>(requests), seconds, after.user_s - before.user_s,
                after.system_s - before.system_s);
    ends_ = true;
    group.wait();
  }

 private:
  const std::string url_, body_;
  std::vector<Asker> askers_;
  tuza::http::Client client_;
  std::atomic<bool> ends_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: client_load URL BODY CONNECTIONS SECONDS\n", stderr);
    return 2;
  }
  return tuza::run([argv] {
    Load load(argv[1], argv[2], std::strtoul(argv[3], nullptr, 10));
    load.run(std::chrono::seconds(std::strtoul(argv[4], nullptr, 10)));
    return 0;
  });
}
