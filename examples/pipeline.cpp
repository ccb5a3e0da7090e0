// A pipeline: one goroutine produces numbers, a bounded channel fans them out to workers, and a second channel collects
// the answers. A context ends the whole pipeline early:
//
//     pipeline 10000          tests the numbers up to 10000
//     pipeline 10000 100      stops after 100 answers
#include <tuza/sched/goroutine.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string_view>

namespace {

constexpr long kMax = std::numeric_limits<long>::max();
constexpr long kAll = -1;

struct Answer {
  long number;
  bool prime;
};

bool is_prime(long n) {
  for (long d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n > 1;
}

void make_numbers(const tuza::Context& ctx, tuza::SendChan<long> numbers, long last) {
  for (long n = 1; n <= last; ++n) {
    if (!numbers.send(ctx, n)) break;  // the context has ended
  }
  numbers.close();
}

void work(const tuza::Context& ctx, tuza::RecvChan<long> numbers, tuza::SendChan<Answer> answers) {
  for (;;) {
    const tuza::Result<std::optional<long>> number = numbers.recv(ctx);
    if (!number || !*number) return;  // the context has ended, or there are no more numbers
    if (!answers.send(ctx, Answer{**number, is_prime(**number)})) return;
  }
}

struct Total {
  long answers = 0, primes = 0;
};

Total run_pipeline(long last, long enough) {
  constexpr int kWorkers = 8;
  tuza::Chan<long> numbers{16};
  tuza::Chan<Answer> answers{16};
  const auto [ctx, cancel] = tuza::with_cancel(tuza::Context::background());

  tuza::WaitGroup workers, others;
  others.go([&] { make_numbers(ctx, numbers, last); });
  for (int i = 0; i < kWorkers; ++i) workers.go([&] { work(ctx, numbers, answers); });
  others.go([&] {
    workers.wait();
    answers.close();
  });

  Total total;
  for (auto [number, prime] : answers) {
    ++total.answers;
    if (prime) ++total.primes;
    if (total.answers == enough) {
      cancel();
      break;
    }
  }
  others.wait();  // these goroutines use the channels, too
  return total;
}

constexpr std::string_view kUsage =
    "Usage: pipeline [LAST [ENOUGH]]\n"
    "  LAST     tests the numbers from 1 to this one (default 10000)\n"
    "  ENOUGH   stops after so many answers (default: all)\n";

// Ends the program if `text` is not a number from `min` on.
long number_or_exit(const char* name, std::string_view text, long min) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= min) return value;
  std::cerr << "pipeline: " << name << ": expected a number from " << min << " to " << kMax << ", not '"
            << text << "'\nTry 'pipeline --help'.\n";
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") return std::cout << kUsage, 0;
  if (argc > 3) {
    std::cerr << "pipeline: unexpected argument " << argv[3] << "\nTry 'pipeline --help'.\n";
    return 2;
  }
  const long last = argc > 1 ? number_or_exit("LAST", argv[1], 0) : 10'000;
  const long enough = argc > 2 ? number_or_exit("ENOUGH", argv[2], 1) : kAll;
  return tuza::run([&] {
    const Total total = run_pipeline(last, enough);
    std::printf("%ld answers, %ld primes\n", total.answers, total.primes);
    // A goroutine that has called done() on its WaitGroup may need a moment to end.
    while (tuza::num_goroutine() > 1) tuza::yield();
    std::printf("%zu goroutine left\n", tuza::num_goroutine());
  });
}
