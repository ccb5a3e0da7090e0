// Umbrella header for time: sleeping, timers, tickers, rate limits, and for tests a clock that advances only when every
// goroutine waits.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/time/after_func.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/leak_check.h>
#include <tuza/sched/time/rate.h>
#include <tuza/sched/time/sleep.h>
#include <tuza/sched/time/ticker.h>
#include <tuza/sched/time/timer.h>
