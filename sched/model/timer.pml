// Model of stop, reset, fire and destroy of a timer: the handshake of sched/time/detail/alarm.h with
// sched/rt/queue/timer_heap.h and sched/time/detail/timer_channel.h.
//
// An owner arms a timer, stops it, arms it again, receives fires, and finally destroys it. Ms take the timer out of its
// heap when it is due, and call its function. Time is a number that increases; a timer is due when its time is not
// after the current time. One step of the model is one access to memory that other threads see; actions that they
// cannot distinguish from it belong to the same step.
//
// What must hold, as assertions:
//   stale      After stop or reset has returned, no fire of an earlier arming is received.
//   early      No fire is received before the time of the current arming.
//   lost       A timer that is not stopped or reset fires.
//   dead       No thread touches the timer after it has been destroyed.
// No deadlock (Spin itself): the destructor does not wait for a call that never comes.
//
// Left out: the order of the heap (there is one timer), and waiters: a fire is kept until it is received.
//
// MS: the number of Ms that fire. CALLS: how many calls the owner makes before it destroys the timer.
//
// size MS=2 CALLS=3: an old fire and a new one in progress at once
// size MS=1 CALLS=4: a longer sequence of calls and fires
//
// variant NO_COUNT: without under_way, an old fire counts as a fire of the current arming
// variant NO_WAIT: a destructor that does not wait for fires in progress
// variant NO_CLEAR: reset and stop keep a fire that has not been received
// variant NO_LOCK: a function that calls fires() and delivers without the lock
// variant TOUCH_AFTER: a function that reads the timer after unlocking
// variant NO_LAST_LOOK: a destructor that checks for fires in progress before it stops the timer

#define NEVER 15

byte now;           // time
bool in_heap;       // Timer::heap
byte when = NEVER;  // Timer::when_ns
bool heap_lock, lock;

// Guarded by `lock`.
byte under_way;
bool armed;
bool fired;

// Variables for the properties only.
bool alive = true;
byte due = NEVER;  // the time of the current arming; NEVER: there is none
byte touching;
bool finished;

#define TAKE(l) atomic { !l -> l = true }
#define GIVE(l) l = false

// Called by the owner, with `lock` held: alarm.h's disarm.
inline disarm() {
  if
  :: armed ->
     armed = false;
     TAKE(heap_lock);
     if
     :: in_heap -> in_heap = false
     :: else ->
#ifndef NO_COUNT
        under_way++
#else
        skip
#endif
     fi;
     GIVE(heap_lock)
  :: else
  fi
}

// alarm.h's arm.
inline arm(delay) {
  TAKE(heap_lock);
  if
  :: !in_heap && armed ->
#ifndef NO_COUNT
     under_way++
#else
     skip
#endif
  :: else
  fi;
  armed = true;
  in_heap = true;
  when = now + delay;
  due = when;
  GIVE(heap_lock)
}

inline forget() {
#ifndef NO_CLEAR
  fired = false
#else
  skip
#endif
}

active proctype owner() {
  byte calls;
  do
  :: calls < CALLS ->
     calls++;
     if
     :: TAKE(lock); forget(); arm(0); GIVE(lock)
     :: now < 3 -> TAKE(lock); forget(); arm(1); GIVE(lock)
     :: TAKE(lock);
        forget();
        disarm();
        atomic { due = NEVER; GIVE(lock) }
     :: TAKE(lock);
        // A received fire belongs to the current arming, and is not early.
        if
        :: fired ->
           assert(due != NEVER);  // stale
           assert(due <= now);    // early
           due = NEVER;
           fired = false
        :: else
        fi;
        GIVE(lock)
     :: now < 3 -> now++
     fi
  :: calls == CALLS -> break
  od;
  // A timer that is left alone fires.
  if
  :: due != NEVER ->
     now = 4;
     (fired);  // lost: Spin reports a wait that never ends
     assert(due <= now)
  :: true
  fi;
  // ~Alarm.
#ifdef NO_LAST_LOOK
  TAKE(lock);
  (under_way == 0) -> skip;
  GIVE(lock);
  TAKE(lock);
  disarm();
  GIVE(lock);
#else
  do
  :: TAKE(lock);
     disarm();
     if
     :: under_way == 0 -> GIVE(lock); break
     :: else -> GIVE(lock)
#ifdef NO_WAIT
        ; break
#endif
        ; (under_way == 0)  // spins
     fi
  od;
#endif
  alive = false;
  finished = true;
  assert(touching == 0)  // dead
}

active [MS] proctype m() {
end:
  do
  :: atomic { (in_heap && when <= now && !heap_lock) -> heap_lock = true };
     // run_due: is the timer still due?
     if
     :: in_heap && when <= now ->
        in_heap = false;
        GIVE(heap_lock);
        // The function: from here on the timer must exist.
        atomic { assert(alive); touching++ };
#ifndef NO_LOCK
        TAKE(lock);
#endif
        assert(alive);
        if
        :: under_way > 0 -> under_way--
        :: else -> armed = false; fired = true
        fi;
#ifdef TOUCH_AFTER
        GIVE(lock);
        assert(alive);
        touching--
#else
#ifndef NO_LOCK
        atomic { touching--; GIVE(lock) }
#else
        touching--
#endif
#endif
     :: else -> GIVE(heap_lock)
     fi
  :: finished -> break
  od
}
