#include <tuza/examples/hostile/steps.h>
#include <tuza/examples/hostile/work.h>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <vector>

namespace hostile {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kHoldNs = kNsPerMs;  // CPU time for which a job holds the mutex at a time
constexpr std::size_t kFileBytes = 32 << 20;
constexpr std::size_t kReadBytes = 64 << 10;

std::array<Counters, kNames.size()> g_counters;
std::mutex g_contended;
std::atomic<std::uint64_t> g_sink{0};  // receives results, so that the compiler cannot eliminate the work
std::atomic<std::uint64_t> g_tosses{0};
int g_file = -1;  // unlinked; set by prepare()

std::uint64_t read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000 * kNsPerMs + static_cast<std::uint64_t>(now.tv_nsec);
}
std::uint64_t thread_cpu_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

// A running job.
struct Run {
  const Job& job;
  Counters& totals;
  Outcome done;

  // Relaxed: the numbers are for reports only; no decision depends on them.
  void iteration() {
    ++done.iterations;
    totals.iterations.fetch_add(1, std::memory_order_relaxed);
  }
  void interrupted() {
    ++done.eintr;
    totals.eintr.fetch_add(1, std::memory_order_relaxed);
  }
  void error() {
    ++done.errors;
    totals.errors.fetch_add(1, std::memory_order_relaxed);
  }
};

template <class Step>
void burn_until(std::uint64_t end_ns, Run& run, Step& step) {
  std::uint64_t sum = 0;
  while (thread_cpu_ns() < end_ns) {
    sum += step();
    run.iteration();
  }
  g_sink.fetch_add(sum, std::memory_order_relaxed);
}

template <class Step>
void burn(Run& run, Step step) {
  burn_until(thread_cpu_ns() + run.job.ms * kNsPerMs, run, step);
}

void burn_in_turn(Run& run) {
  steps::Arithmetic step;
  const std::uint64_t end = thread_cpu_ns() + run.job.ms * kNsPerMs;
  for (std::uint64_t now = thread_cpu_ns(); now < end; now = thread_cpu_ns()) {
    const std::scoped_lock lock(g_contended);
    burn_until(std::min(end, now + kHoldNs), run, step);
  }
}

void sleep(Run& run) {
  timespec left{static_cast<time_t>(run.job.ms / 1000), static_cast<long>(run.job.ms % 1000 * kNsPerMs)};
  while (::nanosleep(&left, &left) != 0) {
    if (errno != EINTR) return run.error();
    run.interrupted();
  }
  run.iteration();
}

void read_pipe(Run& run) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return run.error();
  steps::write_later(run.job.ms, fds[1]);
  char byte = 0;
  for (;;) {
    const ssize_t n = ::read(fds[0], &byte, 1);
    if (n == 1) {
      run.iteration();
      break;
    }
    if (n == 0 || errno != EINTR) {
      run.error();
      break;
    }
    run.interrupted();
  }
  ::close(fds[0]);
}

// The value of each byte of block `index` of the file.
char content(std::uint64_t index) { return static_cast<char>(index % 127 + 1); }

void read_file(Run& run) {
  // A separate open file description, with its own position.
  const int fd = ::open(("/proc/self/fd/" + std::to_string(g_file)).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return run.error();
  const auto buffer = std::make_unique<char[]>(kReadBytes);
  std::uint64_t position = kFileBytes;
  for (std::uint64_t left = run.job.bytes; left > 0;) {
    if (position == kFileBytes) {
      position = 0;
      ::lseek(fd, 0, SEEK_SET);
      if (run.job.cold) ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    const ssize_t n = ::read(fd, buffer.get(), std::min<std::uint64_t>(left, kReadBytes));
    if (n < 0 && errno == EINTR) {
      run.interrupted();
      continue;
    }
    if (n <= 0 || buffer[0] != content(position / kReadBytes)) {
      run.error();
      break;
    }
    position += static_cast<std::uint64_t>(n);
    left -= static_cast<std::uint64_t>(n);
    run.iteration();
  }
  ::close(fd);
}

void dispatch(Run& run) {
  switch (run.job.kind) {
    case Kind::kBurn: return burn(run, steps::Arithmetic{});
    case Kind::kMutex: return burn_in_turn(run);
    case Kind::kMalloc: return burn(run, steps::Malloc{});
    case Kind::kMemcpy: return burn(run, steps::Memcpy{});
    case Kind::kThrow: return burn(run, steps::Throw{});
    case Kind::kPrintf: return burn(run, steps::Printf{});
    case Kind::kSort: return burn(run, steps::Sort{});
    case Kind::kRegex: return burn(run, steps::Regex{});
    case Kind::kSleep: return sleep(run);
    case Kind::kRead: return read_pipe(run);
    case Kind::kFile: return read_file(run);
  }
}

void make_file() {
  const char* folder = std::getenv("TMPDIR");
  std::string name = std::string(folder == nullptr ? "/tmp" : folder) + "/hostile-XXXXXX";
  g_file = ::mkstemp(name.data());
  if (g_file < 0) return;  // every job that reads the file then fails and reports an error
  ::unlink(name.c_str());
  std::vector<char> block(kReadBytes);
  for (std::uint64_t i = 0; i < kFileBytes / kReadBytes; ++i) {
    std::ranges::fill(block, content(i));
    if (::write(g_file, block.data(), block.size()) != static_cast<ssize_t>(block.size())) return;
  }
  ::fdatasync(g_file);  // only pages that are on the disk can be dropped from the cache
}

}  // namespace

std::optional<Kind> kind_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Kind>(found - kNames.begin());
}

Counters& counters(Kind kind) { return g_counters[static_cast<std::size_t>(kind)]; }

void prepare() {
  steps::start_writer();
  make_file();
}

Outcome work(const Job& job) {
  Run run{job, counters(job.kind), {}};
  run.totals.begun.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t cpu = thread_cpu_ns();
  const std::uint64_t wall = read_clock(CLOCK_MONOTONIC);
  dispatch(run);
  run.done.cpu_ms = static_cast<double>(thread_cpu_ns() - cpu) / kNsPerMs;
  run.done.wall_ms = static_cast<double>(read_clock(CLOCK_MONOTONIC) - wall) / kNsPerMs;
  run.totals.ended.fetch_add(1, std::memory_order_relaxed);
  return run.done;
}

void maybe_burn(std::uint64_t permille) {
  // splitmix64 applied to a counter.
  std::uint64_t x = (g_tosses.fetch_add(1, std::memory_order_relaxed) + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  if ((x ^ (x >> 31)) % 1000 < permille) work({.kind = Kind::kBurn, .ms = 1});
}

std::string counters_json() {
  std::string text = "{";
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const Counters& of = g_counters[i];
    const auto add = [&text](std::string_view name, const std::atomic<std::uint64_t>& value) {
      text += std::string(name) + std::to_string(value.load(std::memory_order_relaxed));
    };
    text += (i == 0 ? "\"" : ",\"") + std::string(kNames[i]) + "\":{";
    add(R"("begun":)", of.begun);
    add(R"(,"ended":)", of.ended);
    add(R"(,"iterations":)", of.iterations);
    add(R"(,"eintr":)", of.eintr);
    add(R"(,"errors":)", of.errors);
    text += "}";
  }
  return text + "}";
}

}  // namespace hostile
