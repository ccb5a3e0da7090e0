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

#include <cstdio>
#include <cstdlib>

namespace {

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

}  // namespace

int main(int argc, char** argv) {
  const long last = argc > 1 ? std::atol(argv[1]) : 10'000;
  const long enough = argc > 2 ? std::atol(argv[2]) : -1;
  return tuza::run([&] {
    const Total total = run_pipeline(last, enough);
    std::printf("%ld answers, %ld primes\n", total.answers, total.primes);
    // A goroutine that has called done() on its WaitGroup may need a moment to end.
    while (tuza::num_goroutine() > 1) tuza::yield();
    std::printf("%zu goroutine left\n", tuza::num_goroutine());
  });
}
