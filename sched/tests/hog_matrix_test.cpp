// Whatever eight goroutines do without parking, others keep running, and the eight compute correct results.
//
// Each kind of work runs for TUZA_HOG_SECONDS: 0.3 by default, 2 in `./dev test all`, 60 in
// `./dev test long`.
#include <fcntl.h>
#include <time.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/tests/hogs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::compute;
using testing::Hogs;
using testing::kHogs;
using testing::wait_for;
using Clock = std::chrono::steady_clock;

// The longest time that any goroutine may be without progress: far above the length of a slice, because other tests
// run meanwhile, and ThreadSanitizer delays signals until the thread reaches a call that it intercepts.
// sched/tests/stall_bars.cpp holds the milliseconds that are promised.
constexpr std::chrono::milliseconds kSilenceMax = rt::kTsan || rt::kAsan || testing::kChaos ? 10s : 2s;

std::chrono::milliseconds hog_time() {
  const char* text = std::getenv("TUZA_HOG_SECONDS");
  const double seconds = text != nullptr ? std::strtod(text, nullptr) : 0;
  constexpr int kEverydayMs = rt::kTsan || rt::kAsan || testing::kChaos ? 200 : 300;
  return std::chrono::milliseconds(seconds > 0 ? static_cast<int>(seconds * 1000) : kEverydayMs);
}

// Work that never parks, in steps of about a millisecond. All hogs call it at once.
class Work {
 public:
  Work() = default;
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  // False if a result is wrong.
  virtual bool step(int hog) = 0;
  // Nothing may wait for ever after this call.
  virtual void end() {}
  // Called after the last step.
  virtual bool result_is_right() { return true; }
};

class Spin : public Work {
 public:
  bool step(int) override { return compute(3, 100'000) == right_; }

 private:
  const std::uint64_t right_ = compute(3, 100'000);
};

bool rest(long ns) {
  const struct timespec time{0, ns};
  return ::nanosleep(&time, nullptr) == 0;
}

// Where code is slow (an emulator), going to sleep is itself work, and a signal may arrive a moment too late.
class Nanosleep : public Work {
 public:
  bool step(int) override {
    interrupted_ += rest(2'000'000) ? 0 : 1;
    ++sleeps_;
    return true;
  }
  bool result_is_right() override { return interrupted_ <= 2 + sleeps_ / 50; }

 private:
  std::atomic<int> sleeps_{0}, interrupted_{0};
};

// A goroutine that is asked to stop because it computes may be asleep when the signal arrives: EINTR is
// correct.
class BurnAndSleep : public Spin {
 public:
  bool step(int hog) override {
    const bool right = Spin::step(hog);
    rest(300'000);
    return Spin::step(hog) && right;
  }
};

// A thread outside the runtime writes what the hogs read.
class PipeRead : public Work {
 public:
  PipeRead() {
    if (::pipe(ends_.data()) != 0) throw std::runtime_error("pipe");
    writer_ = std::thread([this] {
      while (!stop_) {
        written_ += ::write(ends_[1], "x", 1) == 1 ? 1 : 0;
        std::this_thread::sleep_for(200us);
      }
      ::close(ends_[1]);  // ends the reads that still wait
    });
  }
  ~PipeRead() override { ::close(ends_[0]); }
  bool step(int) override {
    char c = 0;
    const auto n = ::read(ends_[0], &c, 1);
    read_ += n > 0 ? 1 : 0;
    return n == 0 || (n == 1 && c == 'x');
  }
  void end() override { stop_ = true; }
  bool result_is_right() override {
    writer_.join();
    for (char c = 0; ::read(ends_[0], &c, 1) == 1;) ++read_;
    return read_ == written_;
  }

 private:
  std::array<int, 2> ends_{};
  std::atomic<bool> stop_{false};
  std::atomic<int> read_{0}, written_{0};
  std::thread writer_;
};

class ContendedMutex : public Work {
 public:
  bool step(int) override {
    const std::scoped_lock lock(mutex_);
    const int before = guarded_;
    compute(1, 20'000);
    guarded_ = before + 1;
    ++steps_;
    return true;
  }
  bool result_is_right() override { return guarded_ == steps_; }

 private:
  std::mutex mutex_;
  int guarded_ = 0;
  std::atomic<int> steps_{0};
};

class Malloc : public Work {
 public:
  bool step(int hog) override {
    std::array<std::unique_ptr<char[]>, 64> blocks;
    const auto mark = static_cast<char>(hog + 1);
    bool right = true;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::size_t bytes = 16 + (i * 7919) % 5000;
      blocks[i] = std::make_unique_for_overwrite<char[]>(bytes);
      std::memset(blocks[i].get(), mark, bytes);
    }
    for (const auto& block : blocks) right = right && block[0] == mark && block[15] == mark;
    return right;
  }
};

class Memcpy : public Work {
 public:
  Memcpy() {
    for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = static_cast<char>(i * 31);
    for (auto& block : to_) block.resize(from_.size());
  }
  bool step(int hog) override {
    std::vector<char>& to = to_[static_cast<std::size_t>(hog)];
    std::fill(to.begin(), to.end(), char{0});
    std::memcpy(to.data(), from_.data(), from_.size());
    return to == from_;
  }

 private:
  std::vector<char> from_ = std::vector<char>(std::size_t{1} << 20);
  std::array<std::vector<char>, kHogs> to_;
};

class Throw : public Work {
 public:
  bool step(int hog) override {
    for (int i = 0; i < 50; ++i) {
      try {
        deep(hog * 1000 + i, 5);
        return false;
      } catch (const std::out_of_range& error) {
        if (error.what() != std::to_string(hog * 1000 + i)) return false;
      }
    }
    return true;
  }

 private:
  static int deep(int value, int depth) {
    const std::string text = std::to_string(value);
    if (depth == 0) throw std::out_of_range(text);
    return deep(value, depth - 1) + static_cast<int>(text.size());
  }
};

class Fprintf : public Work {
 public:
  ~Fprintf() override { std::fclose(file_); }
  bool step(int hog) override {
    for (int i = 0; i < 500; ++i) {
      if (std::fprintf(file_, "hog %d of %d: %05d\n", hog, kHogs, i) != 18) return false;
    }
    return true;
  }

 private:
  std::FILE* file_ = std::fopen("/dev/null", "w");
};

class Qsort : public Work {
 public:
  bool step(int hog) override {
    std::array<std::uint64_t, 64> numbers{};
    std::uint64_t next = static_cast<std::uint64_t>(hog) + 1;
    for (auto& number : numbers) number = next = compute(next, 1) >> 1;
    std::qsort(numbers.data(), numbers.size(), sizeof numbers[0], [](const void* a, const void* b) {
      compute(1, 2000);
      const auto left = *static_cast<const std::uint64_t*>(a), right = *static_cast<const std::uint64_t*>(b);
      return left < right ? -1 : left > right ? 1 : 0;
    });
    return std::is_sorted(numbers.begin(), numbers.end());
  }
};

class Regex : public Work {
 public:
  bool step(int) override {
    const std::regex words("([a-z]+)=([0-9]+);");
    const std::string text = "one=1;two=22;three=;four=4444;5=five;six=6;";
    return std::distance(std::sregex_iterator(text.begin(), text.end(), words), std::sregex_iterator()) == 4;
  }
};

class DiskRead : public Work {
 public:
  DiskRead() {
    for (std::size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 17 + i / 256);
    std::string name = (std::filesystem::temp_directory_path() / "tuza_hog_XXXXXX").string();
    fd_ = ::mkstemp(name.data());
    ::unlink(name.c_str());
    if (::write(fd_, content_.data(), content_.size()) != static_cast<long>(content_.size())) {
      throw std::runtime_error("cannot write " + name);
    }
  }
  ~DiskRead() override { ::close(fd_); }
  bool step(int hog) override {
    std::array<char, 10'000> block;
    const std::size_t at = static_cast<std::size_t>(hog) * 100'000;
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
    return ::pread(fd_, block.data(), block.size(), static_cast<long>(at)) ==
               static_cast<long>(block.size()) &&
           std::memcmp(block.data(), content_.data() + at, block.size()) == 0;
  }

 private:
  std::vector<char> content_ = std::vector<char>(std::size_t{1} << 20);
  int fd_ = -1;
};

struct Kind {
  const char* name;
  std::unique_ptr<Work> (*make)();
};
template <class W>
std::unique_ptr<Work> make() {
  return std::make_unique<W>();
}
constexpr Kind kKinds[] = {
    {"Spin", make<Spin>},         {"Nanosleep", make<Nanosleep>},
    {"PipeRead", make<PipeRead>}, {"ContendedMutex", make<ContendedMutex>},
    {"Malloc", make<Malloc>},     {"Memcpy", make<Memcpy>},
    {"Throw", make<Throw>},       {"Fprintf", make<Fprintf>},
    {"Qsort", make<Qsort>},
#if !defined(TUZA_TSAN)  // libstdc++ fills a cache of its locale without a lock
    {"Regex", make<Regex>},
#endif
    {"DiskRead", make<DiskRead>}, {"BurnAndSleep", make<BurnAndSleep>},
};

// Something that should happen all the time.
class Progress {
 public:
  explicit Progress(const char* what) : what_(what) {}
  // Called by the one goroutine that makes the progress.
  void made() {
    const auto now = Clock::now();
    longest_ = std::max(longest_, now - last_);
    last_ = now;
    ++count_;
  }
  // Waits until it has happened ten times: how often it happens in a given time depends on the machine.
  void wait_for_ten() const {
    while (count_ < 10) sleep_for(1ms);
  }
  // Called after that goroutine has ended.
  void check() {
    made();  // the silence at the end counts
    EXPECT_LT(longest_ / 1ms, kSilenceMax / 1ms) << what_;
  }

 private:
  const char* what_;
  Clock::time_point last_ = Clock::now();
  Clock::duration longest_{};
  std::atomic<int> count_ = 0;
};

// The goroutines that must keep running meanwhile.
class Others {
 public:
  Others() {
    group_.go([this] {
      while (!stop_) {
        sleep_for(1ms);
        ticks_.made();
      }
    });
    group_.go([this] {
      while (!stop_) {
        ping_.release();
        pong_.acquire();
        rounds_.made();
      }
      ping_.release();
    });
    group_.go([this] {
      for (ping_.acquire(); !stop_; ping_.acquire()) pong_.release();
      pong_.release();
    });
    group_.go([this] {
      while (!stop_) {
        WaitGroup one;
        int done = 0;
        one.go([&done] { done = 1; });
        one.wait();
        EXPECT_EQ(done, 1);
        spawned_.made();
        sleep_for(100us);
      }
    });
  }
  void end() {
    for (const Progress* one : {&ticks_, &rounds_, &spawned_}) one->wait_for_ten();
    stop_ = true;
    group_.wait();
    ticks_.check();
    rounds_.check();
    spawned_.check();
  }

 private:
  std::atomic<bool> stop_{false};
  Semaphore ping_{0}, pong_{0};
  Progress ticks_{"ticker"}, rounds_{"ping-pong"}, spawned_{"spawner"};
  WaitGroup group_;
};

class HogMatrixTest : public ::testing::TestWithParam<std::tuple<Kind, int>> {};
INSTANTIATE_TEST_SUITE_P(P, HogMatrixTest,
                         ::testing::Combine(::testing::ValuesIn(kKinds),
                                            ::testing::ValuesIn(testing::proc_counts({1, 2}))),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_P" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST_P(HogMatrixTest, OthersKeepRunningAndTheWorkIsCorrect) {
  const auto& [kind, procs] = GetParam();
  const std::unique_ptr<Work> work = kind.make();
  testing::run_with(procs, [&work] {
    std::atomic<int> wrong = 0;
    {
      Hogs hogs(kHogs, [&](int i) { wrong += work->step(i) ? 0 : 1; });
      Others others;
      sleep_for(hog_time());
      hogs.wait_for_turns(1);
      others.end();
      work->end();
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(work->result_is_right());
  });
}

}  // namespace
}  // namespace tuza
