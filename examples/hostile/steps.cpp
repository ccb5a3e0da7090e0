#include <tuza/examples/hostile/steps.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <queue>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hostile::steps {
namespace {

constexpr std::size_t kCopyBytes = 256 << 10;
constexpr std::size_t kCopyFromBytes = 8 << 20;  // more than most caches hold

// Returns page-aligned memory. The page offsets of two blocks can make a copy between them up to 2.5 times slower (4K
// aliasing: a load appears to overlap a recent store 4 KiB away), and with malloc the offsets would be arbitrary.
Pages new_pages(std::size_t bytes, int content) {
  Pages pages(static_cast<char*>(std::aligned_alloc(4096, bytes)));
  if (pages == nullptr) std::abort();
  std::memset(pages.get(), content, bytes);
  return pages;
}

std::uint64_t scramble(std::uint64_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

[[gnu::noinline]] std::uint64_t throw_sometimes(std::uint64_t number) {
  if (number % 16 != 15) throw std::runtime_error("number");
  return number;
}

int compare_slowly(const void* left, const void* right) {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::memcpy(&a, left, sizeof a);
  std::memcpy(&b, right, sizeof b);
  const std::uint64_t x = scramble(a + std::uint64_t{1}, 8);
  const std::uint64_t y = scramble(b + std::uint64_t{1}, 8);
  return x < y ? -1 : static_cast<int>(x > y);
}

// The thread that ends the waits of kRead; one thread serves all jobs.
class Writer {
 public:
  void start() {
    std::thread([this] { run(); }).detach();
  }
  void add(std::chrono::steady_clock::time_point when, int fd) {
    const std::scoped_lock lock(mutex_);
    due_.emplace(when, fd);
    changed_.notify_one();
  }

 private:
  using Due = std::pair<std::chrono::steady_clock::time_point, int>;

  [[noreturn]] void run() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock lock(mutex_);
    for (;;) {
      if (due_.empty()) {
        changed_.wait(lock);
      } else if (due_.top().first > std::chrono::steady_clock::now()) {
        changed_.wait_until(lock, Due(due_.top()).first);
      } else {
        const int fd = due_.top().second;
        due_.pop();
        if (::write(fd, "x", 1) != 1) std::abort();  // each job has its own pipe, which has room for a byte
        ::close(fd);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

Writer& writer() {
  static auto* const only = new Writer;
  return *only;
}

}  // namespace

std::uint64_t Arithmetic::operator()() { return state = scramble(state, 8'000); }

std::uint64_t Malloc::operator()() {
  std::array<unsigned char*, 64> blocks;
  std::uint64_t sum = 0;
  for (unsigned char*& block : blocks) {
    const std::size_t bytes = std::size_t{16} << random() % 11;  // up to 16 KiB
    block = static_cast<unsigned char*>(std::malloc(bytes));
    if (block == nullptr) std::abort();
    block[bytes / 2] = static_cast<unsigned char>(bytes >> 4);
    sum += block[bytes / 2];
  }
  // Free the blocks in another order than that of their allocation.
  for (std::size_t i = 0; i < blocks.size(); ++i) std::free(blocks[i * 37 % blocks.size()]);
  return sum;
}

std::uint64_t Memcpy::operator()() {
  static const Pages& source = *new Pages(new_pages(kCopyFromBytes, 'x'));
  if (into == nullptr) into = new_pages(kCopyBytes, 0);
  std::memcpy(into.get(), source.get() + from, kCopyBytes);
  from = (from + kCopyBytes) % kCopyFromBytes;
  return static_cast<unsigned char>(into[from % kCopyBytes]);
}

std::uint64_t Throw::operator()() {
  std::uint64_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    try {
      sum += throw_sometimes(++count);
    } catch (const std::exception& error) {
      sum += std::strlen(error.what());
    }
  }
  return sum;
}

std::uint64_t Printf::operator()() {
  static std::FILE* const nowhere = std::fopen("/dev/null", "w");
  if (nowhere == nullptr) std::abort();
  for (int i = 0; i < 64; ++i) {
    ++count;
    std::fprintf(nowhere, "%llu lines, %g of them written\n", static_cast<unsigned long long>(count),
                 static_cast<double>(count) / 3);
  }
  return count;
}

std::uint64_t Sort::operator()() {
  for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(random());
  std::qsort(numbers.data(), numbers.size(), sizeof numbers[0], &compare_slowly);
  return numbers[0];
}

std::uint64_t Regex::operator()() {
  static const std::regex& address = *new std::regex(R"(([a-z.]+)@([a-z]+)\.(com|org|net))");
  static const std::string& text = *new std::string(
      "Among many words that are not what is looked for, such as these.ones or at@no or a@b.xyz, "
      "there is at last some.body@example.org");
  std::smatch found;
  if (!std::regex_search(text, found, address)) std::abort();
  return static_cast<std::uint64_t>(found.position());
}

void start_writer() { writer().start(); }

void write_later(std::uint64_t ms, int fd) {
  writer().add(std::chrono::steady_clock::now() + std::chrono::milliseconds(ms), fd);
}

}  // namespace hostile::steps
