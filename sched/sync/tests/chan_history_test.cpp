// Recorded histories of channels, checked against the definition of a channel. For small histories: an
// exhaustive search for an order of the calls in which a sequential channel could have given these answers
// (J. Wing and C. Gong, "Testing and verifying concurrent objects", 1993). For large ones: no element is lost
// or doubled, and no two elements of one sender are out of order at one receiver.
#include <tuza/sched/blocking.h>
#include <tuza/sched/external.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/tests/chan_testing.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <algorithm>
#include <limits>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using namespace testing;

enum class Did { kSent, kNotSent, kReceived, kEmpty, kClosed, kClose };

// A call and its answer. The call took effect at some moment between its two readings of one clock.
struct Call {
  int begin, end;
  Did did;
  int value;
};
using Calls = std::vector<Call>;

// A sequential channel.
class Model {
 public:
  Model(const Calls& history, std::size_t capacity) : history_(history), capacity_(capacity) {}

  // True if these answers fit some order of all calls in which no call precedes one that had ended before it
  // began.
  bool explains() { return search(0, {}, false); }

 private:
  using State = std::pair<unsigned, std::vector<int>>;

  bool search(unsigned done, std::vector<int> queue, bool closed) {
    if (done + 1 == 1u << history_.size()) return true;
    if (!seen_.insert(State{done, queue}).second) return false;  // closed follows from done
    int first_end = std::numeric_limits<int>::max();
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if ((done >> i & 1) == 0) first_end = std::min(first_end, history_[i].end);
    }
    for (std::size_t i = 0; i < history_.size(); ++i) {
      const Call& call = history_[i];
      if ((done >> i & 1) != 0 || call.begin > first_end) continue;
      std::vector<int> after = queue;
      bool closed_after = closed;
      if (step(call, after, closed_after) && search(done | 1u << i, after, closed_after)) return true;
    }
    return false;
  }

  // Without a buffer sender and receiver meet: the element exists between the send and the receive, which are
  // adjacent.
  bool step(const Call& call, std::vector<int>& queue, bool& closed) const {
    const bool meeting = capacity_ == 0 && !queue.empty();
    switch (call.did) {
      case Did::kSent:
        if (closed || queue.size() >= std::max<std::size_t>(capacity_, 1)) return false;
        queue.push_back(call.value);
        return true;
      case Did::kReceived:
        if (queue.empty() || queue.front() != call.value) return false;
        queue.erase(queue.begin());
        return true;
      case Did::kNotSent: return !closed && !meeting && queue.size() >= capacity_;
      case Did::kEmpty: return !closed && queue.empty();
      case Did::kClosed: return closed && queue.empty();
      case Did::kClose: return !meeting && !std::exchange(closed, true);
    }
    return false;
  }

  const Calls& history_;
  const std::size_t capacity_;
  std::set<State> seen_;
};

TEST(ChanHistory, TheCheckerSeesWhatIsWrong) {
  const auto explains = [](const Calls& h, std::size_t capacity) { return Model(h, capacity).explains(); };
  const Calls in_order{
      {0, 1, Did::kSent, 1}, {2, 3, Did::kSent, 2}, {4, 5, Did::kReceived, 1}, {6, 7, Did::kReceived, 2}};
  EXPECT_TRUE(explains(in_order, 2));
  EXPECT_FALSE(explains(in_order, 1)) << "more than fits";
  EXPECT_FALSE(explains(in_order, 0)) << "a send that did not wait";
  EXPECT_FALSE(explains(
      {{0, 1, Did::kSent, 1}, {2, 3, Did::kSent, 2}, {4, 5, Did::kReceived, 2}, {6, 7, Did::kReceived, 1}},
      2));
  EXPECT_FALSE(explains({{0, 1, Did::kSent, 1}, {2, 3, Did::kReceived, 1}, {4, 5, Did::kReceived, 1}}, 2));
  EXPECT_FALSE(explains({{0, 1, Did::kSent, 1}, {2, 3, Did::kEmpty, 0}}, 2)) << "an element is there";
  EXPECT_FALSE(explains({{0, 1, Did::kNotSent, 1}}, 2)) << "there is room";
  EXPECT_FALSE(explains({{0, 1, Did::kClosed, 0}, {2, 3, Did::kClose, 0}}, 2)) << "not yet";
  EXPECT_FALSE(explains({{0, 1, Did::kSent, 1}, {2, 3, Did::kClose, 0}, {4, 5, Did::kClosed, 0}}, 2));
  EXPECT_TRUE(explains({{0, 3, Did::kSent, 1}, {1, 2, Did::kReceived, 1}}, 0));
  EXPECT_TRUE(explains({{0, 5, Did::kSent, 1}, {1, 2, Did::kEmpty, 0}, {3, 4, Did::kReceived, 1}}, 1));
}

// Records the calls of one goroutine or thread.
class Recorder {
 public:
  Recorder(Chan<int>& chan, std::atomic<int>& clock, std::uint64_t seed)
      : chan_(chan), clock_(clock), random_(seed) {}

  void send(int value) {
    const int begin = clock_++;
    if (random_.below(2) == 0) {
      chan_.send(value);
      calls_.push_back({begin, clock_++, Did::kSent, value});
    } else {
      const bool sent = chan_.try_send(value);
      calls_.push_back({begin, clock_++, sent ? Did::kSent : Did::kNotSent, value});
    }
    pause();
  }
  // Returns false if the channel is closed.
  bool recv() {
    const int begin = clock_++;
    if (calls_.size() < 3 && random_.below(2) == 0) {
      const auto got = chan_.try_recv();
      const Did nothing = !got && got.error() == TryRecvError::kEmpty ? Did::kEmpty : Did::kClosed;
      calls_.push_back({begin, clock_++, got ? Did::kReceived : nothing, got ? *got : 0});
      pause();
      return got.has_value() || nothing == Did::kEmpty;
    }
    const auto got = chan_.recv();
    calls_.push_back({begin, clock_++, got ? Did::kReceived : Did::kClosed, got ? *got : 0});
    pause();
    return got.has_value();
  }
  void close() {
    const int begin = clock_++;
    chan_.close();
    calls_.push_back({begin, clock_++, Did::kClose, 0});
  }
  void append_to(Calls& history) const { history.insert(history.end(), calls_.begin(), calls_.end()); }

 private:
  void pause() {
    if (goroutine_id() != 0 && random_.below(3) == 0) yield();
  }

  Chan<int>& chan_;
  std::atomic<int>& clock_;
  Random random_;
  Calls calls_;
};

class ChanHistory : public WithProcs {};
TUZA_WITH_PROCS(ChanHistory);

TEST_P(ChanHistory, SmallOnesHaveAnOrder) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(4'000) + 20; ++round) {
      const std::size_t capacity = static_cast<std::size_t>(round % 3);
      Chan<int> chan{capacity};
      std::atomic<int> clock{0};
      std::vector<Recorder> recorders;
      for (int i = 0; i < 5; ++i)
        recorders.emplace_back(chan, clock, static_cast<std::uint64_t>(round * 5 + i + 1));
      WaitGroup senders, receivers;
      const bool with_thread = round % 16 == 0;
      std::thread thread;
      for (int i = 0; i < 2; ++i) {
        receivers.go([&r = recorders[static_cast<std::size_t>(2 + i)]] {
          while (r.recv()) {
          }
        });
        const auto send_two = [&r = recorders[static_cast<std::size_t>(i)], i] {
          r.send(10 * i);
          r.send(10 * i + 1);
        };
        if (with_thread && i == 0) {
          thread = std::thread([send_two, promise = ExternalWaker()] { send_two(); });
        } else {
          senders.go(send_two);
        }
      }
      senders.wait();
      if (thread.joinable()) {
        blocking([&] { thread.join(); });
      }
      recorders[4].close();
      receivers.wait();
      Calls history;
      for (const Recorder& r : recorders) r.append_to(history);
      ASSERT_LT(history.size(), 32u);
      ASSERT_TRUE(Model(history, capacity).explains()) << "capacity " << capacity << ", round " << round;
    }
  });
}

// Senders and receivers of both kinds on one channel. An element consists of its sender and its number.
class Crowd {
 public:
  static constexpr int kSenders = 4, kReceivers = 4;
  Crowd(std::size_t capacity, int each) : chan_(capacity), each_(each), got_(kReceivers) {}

  void run() {
    WaitGroup senders, receivers;
    std::vector<std::thread> threads;
    for (int i = 0; i < kReceivers; ++i) {
      const auto body = [this, i] {
        for (auto x : chan_) got_[static_cast<std::size_t>(i)].push_back(x);
      };
      i == 0 ? (void)threads.emplace_back([body, promise = ExternalWaker()] { body(); }) : receivers.go(body);
    }
    std::atomic<bool> thread_sent{false};
    for (int i = 0; i < kSenders; ++i) {
      const auto body = [this, i] {
        for (int k = 0; k < each_; ++k) chan_.send({i, k});
      };
      if (i == 0) {
        threads.emplace_back([body, &thread_sent, promise = ExternalWaker()] {
          body();
          thread_sent = true;
        });
      } else {
        senders.go(body);
      }
    }
    senders.wait();
    while (!thread_sent) sleep_for(std::chrono::microseconds(100));
    chan_.close();
    receivers.wait();
    blocking([&] {
      for (std::thread& t : threads) t.join();
    });
  }

  void check() const {
    std::vector<std::pair<int, int>> all;
    for (const auto& one : got_) {
      std::vector<int> last(kSenders, -1);
      for (const auto& [sender, number] : one) {
        ASSERT_LT(std::exchange(last[static_cast<std::size_t>(sender)], number), number) << "out of order";
      }
      all.insert(all.end(), one.begin(), one.end());
    }
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(kSenders * each_));
    EXPECT_TRUE(std::ranges::adjacent_find(all) == all.end()) << "doubled";
  }

 private:
  Chan<std::pair<int, int>> chan_;
  const int each_;
  std::vector<std::vector<std::pair<int, int>>> got_;
};

TEST_P(ChanHistory, ManyAtOnceLoseNothing) {
  run_with(GetParam(), [] {
    for (const std::size_t capacity : {0u, 1u, 4u, 256u}) {
      Crowd crowd(capacity, scaled(2'000));
      crowd.run();
      crowd.check();
    }
  });
}

}  // namespace
}  // namespace tuza
