#include <tuza/tuza.h>

#include <atomic>

int main() {
  return tuza::run([] {
    std::atomic<int> sum{0};
    tuza::WaitGroup group;
    for (int i = 1; i <= 100; ++i) group.go([&sum, i] { sum += i; });
    group.wait();
    return sum == 5050 ? 0 : 1;
  });
}
