// An action that is due before its goroutine parks.
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/slice/before_park.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>

namespace tuza::testing {
namespace {

class BeforeParkTest : public WithProcs {};
TUZA_WITH_PROCS(BeforeParkTest);

void count(void* counter) { ++*static_cast<int*>(counter); }

TEST_P(BeforeParkTest, RunsOnceAndBeforeTheGoroutineParks) {
  run_with(GetParam(), [] {
    int times = 0;
    Chan<int> asked(0), answer(0);
    go([&] {
      (void)asked.recv();
      EXPECT_EQ(times, 1);  // the other goroutine has parked, and its writes are visible here
      answer.send(7);
    });
    rt::set_before_park(&count, &times);
    EXPECT_EQ(times, 0);
    asked.send(1);
    EXPECT_EQ(answer.recv(), 7);
    sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(times, 1);
  });
}

TEST_P(BeforeParkTest, AnActionThatIsClearedDoesNotRun) {
  run_with(GetParam(), [] {
    int times = 0;
    rt::set_before_park(&count, &times);
    rt::clear_before_park();
    sleep_for(std::chrono::milliseconds(1));
    yield();
    EXPECT_EQ(times, 0);
  });
}

TEST_P(BeforeParkTest, BelongsToItsGoroutine) {
  run_with(GetParam(), [] {
    int mine = 0, others = 0;
    Chan<int> done(0);
    rt::set_before_park(&count, &mine);
    go([&] {
      rt::set_before_park(&count, &others);
      done.send(1);  // may or may not park; it is a parking point
      rt::clear_before_park();
    });
    (void)done.recv();
    EXPECT_EQ(mine, 1);
    yield();
    EXPECT_EQ(mine, 1);
    EXPECT_EQ(others, 1);
  });
}

TEST_P(BeforeParkTest, TheActionMayParkAndSetAnother) {
  struct Parks {
    int times = 0;
    static void act(void* self) {
      if (++static_cast<Parks*>(self)->times < 3) rt::set_before_park(&act, self);
      sleep_for(std::chrono::microseconds(10));
    }
  };
  run_with(GetParam(), [] {
    Parks parks;
    rt::set_before_park(&Parks::act, &parks);
    sleep_for(std::chrono::microseconds(10));
    EXPECT_EQ(parks.times, 3);
  });
}

}  // namespace
}  // namespace tuza::testing
