// The contract of rt/base/futex.h, for the form that is compiled here. A wake-up that is lost shows as a test that hangs.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <tuza/sched/rt/base/futex.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <thread>
#include <vector>

namespace tuza::rt {
namespace {

using Word = std::atomic<std::uint32_t>;

constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;

void set_and_wake(Word& word, std::uint32_t value, int count) {
  word.store(value);
  futex_wake(word, count);
}

void wait_while(Word& word, std::uint32_t value, std::int64_t timeout_ns = -1) {
  while (word.load() == value) futex_wait(word, value, timeout_ns);
}

TEST(FutexTest, DoesNotWaitWhenTheWordHasAnotherValue) {
  Word word{1};
  futex_wait(word, 0);
  futex_wait(word, 0, kHourNs);
}

TEST(FutexTest, AWaitWithATimeoutEndsByItself) {
  Word word{0};
  for (const std::int64_t timeout_ns : {0, 1, 1'000'000}) futex_wait(word, 0, timeout_ns);
}

TEST(FutexTest, TheLongestTimeoutIsALimitLikeAnyOther) {
  Word word{0};
  std::thread waiter([&word] { wait_while(word, 0, INT64_MAX); });
  set_and_wake(word, 1, 1);
  waiter.join();
}

TEST(FutexTest, NoWakeUpIsLostBetweenTwoThreadsThatTakeTurns) {
  constexpr std::uint32_t kTurns = 5000;
  Word word{0};
  const auto take_turns = [&word](std::uint32_t own) {
    for (std::uint32_t turn = own; turn < kTurns; turn += 2) {
      for (std::uint32_t seen; (seen = word.load()) != turn;) futex_wait(word, seen);
      set_and_wake(word, turn + 1, 1);
    }
  };
  std::thread other(take_turns, 1);
  take_turns(0);
  other.join();
  EXPECT_EQ(word, kTurns);
}

TEST(FutexTest, OneCallWakesAsManyAsItIsAskedFor) {
  constexpr int kThreads = 8;
  Word word{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&word] { wait_while(word, 0); });
  set_and_wake(word, 1, INT_MAX);
  for (std::thread& thread : threads) thread.join();
}

// More words than there are queues in any table, each with a waiter that is woken once.
TEST(FutexTest, AWakeUpReachesNoWaiterOfAnotherWord) {
  constexpr std::size_t kWords = 300;
  std::vector<Word> words(kWords);
  std::vector<std::thread> threads;
  for (Word& word : words) threads.emplace_back([&word] { wait_while(word, 0); });
  for (Word& word : words) set_and_wake(word, 1, 1);
  for (std::thread& thread : threads) thread.join();
}

TEST(FutexTest, AWakeUpMayMeetATimeout) {
  Word word{0}, done{0};
  std::thread waker([&] {
    while (done.load() == 0) futex_wake(word, 1);
  });
  for (std::int64_t i = 0; i < 5000; ++i) futex_wait(word, 0, i % 50 * 1000);
  done.store(1);
  waker.join();
}

TEST(FutexTest, TheMemoryOfTheWordMayBeGoneBeforeTheWakeUp) {
  for (int i = 0; i < 1000; ++i) {
    auto* word = new Word{0};
    std::thread owner([word] {
      wait_while(*word, 0);
      delete word;
    });
    word->store(1);
    futex_wake(*word, 1);
    owner.join();
  }
}

// -- In the handler of a signal.

Word g_enters{0}, g_may_leave{0};

void wait_in_handler(int) {
  set_and_wake(g_enters, g_enters + 1, 1);
  wait_while(g_may_leave, 0);
}

TEST(FutexTest, AHandlerMayWaitAndWakeWhileItsThreadWaits) {
  struct sigaction action{}, before{};
  action.sa_handler = &wait_in_handler;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  for (int i = 0; i < 200; ++i) {
    g_enters = g_may_leave = 0;
    Word begun{0}, word{0};
    std::thread waiter([&] {
      // ThreadSanitizer loses a signal that comes while it makes its record of a thread's signals, in the first call that waits.
      futex_wait(word, 0, 1);
      set_and_wake(begun, 1, 1);
      wait_while(word, 0);
    });
    wait_while(begun, 0);
    pthread_kill(waiter.native_handle(), SIGUSR1);
    wait_while(g_enters, 0);
    // The thread under the handler is woken first, and then the handler.
    set_and_wake(word, 1, 1);
    set_and_wake(g_may_leave, 1, 1);
    waiter.join();
  }
  sigaction(SIGUSR1, &before, nullptr);
}

// -- In the child of a fork().

TEST(FutexTest, TheChildOfAForkNeitherWaitsForNorWakesThreadsOfTheParent) {
  Word word{0}, done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (done.load() == 0) {
        futex_wait(word, 0, 1000);
        futex_wake(word, 1);
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      futex_wake(word, INT_MAX);
      futex_wait(word, 0, 1000);
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done.store(1);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tuza::rt
