// With the argument `mistake`, a goroutine uses memory that it has freed.
#include <tuza/tuza.h>

#include <atomic>
#include <memory>

namespace {

std::atomic<int> sum{0};

int deep(int frames) {
  const int local = frames;
  const int* at = &local;
  tuza::yield();
  return frames == 0 ? 0 : deep(frames - 1) + (*at == frames ? 1 : 1000);
}

[[gnu::noinline]] int make_a_mistake() {
  auto value = std::make_unique<int>(1);
  const int* freed = value.get();
  value.reset();
  return *freed;
}

}  // namespace

int main(int argc, char**) {
  return tuza::run([argc] {
    tuza::WaitGroup group;
    for (int i = 0; i < 20; ++i) group.go([] { sum += deep(20); });
    group.wait();
    if (argc > 1) group.go([] { sum += make_a_mistake(); });
    group.wait();
    return sum == 400 ? 0 : 1;
  });
}
