// Runs the work of examples/hostile on plain threads, to show what the machine and its kernel do without any runtime.
//
//     stall_threads KIND THREADS SECONDS AMOUNT      AMOUNT: ms, or bytes for `file`, which is read from the
//     disk
//
// Each thread does one job after the other. The program waits for a moment, so that all threads begin, and then prints
// the number of iterations in SECONDS.
#include <tuza/examples/hostile/work.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

namespace {

std::uint64_t number(const char* text, std::uint64_t max) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error == std::errc() && *end == '\0' && value >= 1 && value <= max) return value;
  std::fprintf(stderr, "stall_threads: '%s' is not a number from 1 to %llu\n", text,
               static_cast<unsigned long long>(max));
  std::_Exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<hostile::Kind> kind = argc == 5 ? hostile::kind_named(argv[1]) : std::nullopt;
  if (!kind) {
    std::fputs("usage: stall_threads KIND THREADS SECONDS AMOUNT\n", stderr);
    return 2;
  }
  const std::uint64_t threads = number(argv[2], 10'000);
  const std::chrono::seconds window(number(argv[3], 3'600));
  const std::uint64_t amount = number(argv[4], std::uint64_t{16} << 30);
  const hostile::Job job{.kind = *kind, .ms = amount, .bytes = amount, .cold = true};
  hostile::prepare();
  for (std::uint64_t i = 0; i < threads; ++i) {
    std::thread([job] {
      for (;;) hostile::work(job);
    }).detach();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const hostile::Counters& done = hostile::counters(job.kind);
  const std::uint64_t before = done.iterations;
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(window);
  const std::uint64_t iterations = done.iterations - before;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf(R"({"iterations":%llu,"seconds":%.6f,"errors":%llu})"
              "\n",
              static_cast<unsigned long long>(iterations), seconds.count(),
              static_cast<unsigned long long>(done.errors));
  std::fflush(stdout);
  std::_Exit(0);  // the other threads never end
}
