// Model of the state word and the queue of sched/sync/mutex.cpp: no locker waits for a mutex that is free.
//
// Lockers lock and unlock the mutex. Each may give its wait up, as a goroutine does whose context ends, and then
// returns without the mutex. One step of the model is one access to memory that other threads see; lock_ is taken and
// given back like any lock. Of the operations of rt::Wait (sched/sync/detail/wait.h), the claim is one step here, and
// the wake is another.
//
// What must hold:
//   (assertions)     One locker holds the mutex at a time. A locker that is handed the mutex finds it locked. No
//                    locker touches the mutex when all the others have returned and may have destroyed it. When all
//                    have returned nothing is left behind: no bit is set, and the queue is empty. At most one locker
//                    owns Awake: if two were awake, the second might come before the first.
//   (Spin itself)    No deadlock: no locker waits for a mutex that is free, or that will be free.
//
// Left out: how long a locker spins (it may set Awake and continue), and that time decides which locker is starving
// (any locker that was woken without getting the mutex may be). Memory is sequentially consistent: the word is changed
// by compare and swap only, and the queue under lock_.
//
// LOCKERS: the number of lockers; TURNS: how often each of them locks. GIVE_UPS: how many waits may be given up.
//
// size LOCKERS=2 TURNS=2 GIVE_UPS=1: two lockers that lock repeatedly
// size LOCKERS=3 TURNS=1 GIVE_UPS=0: an owner, a locker that is woken, a locker that comes in between
// size LOCKERS=3 TURNS=1 GIVE_UPS=2: waiters give up while they are about to be woken
// size LOCKERS=3 TURNS=2 GIVE_UPS=1: all of these
//
// variant ANNOUNCE_LATE: queues first and sets the bit later, without checking the lock: unlock() sees no waiter
// variant KEEP_AWAKE: a locker that queues again and keeps its Awake bit stops the wake-ups
// variant WAKE_TWO at 2: unlock() sets Awake only when it frees the mutex, and may wake a waiter beside a spinner
// variant FREE_AT_HAND_OVER: a starving mutex that is free for a moment gets two owners
// variant GIVE_UP_SILENTLY: a locker leaves although it was claimed, so its wake-up, or the mutex it got, is lost
// variant FREE_UNDER_LOCK: unlock() frees the mutex, when all have given up, but must still give lock_ back

#define NOBODY 7

// -- The mutex.
bool locked, waiters, awake, starving;
bool lock_;
chan queue = [LOCKERS] of { byte };

// -- The waits.
bool claimed[LOCKERS];
bool woken[LOCKERS];
bool handed[LOCKERS];
byte give_ups_left = GIVE_UPS;

// -- Variables for the properties.
byte owner = NOBODY;
byte awakes;           // how many lockers own Awake
byte users = LOCKERS;  // lockers that have not returned for good

inline take_lock_() { atomic { !lock_ -> assert(users > 0); lock_ = true } }
inline drop_lock_() { atomic { assert(lock_ && users > 0); lock_ = false } }

inline set_awake() { awake = true; awakes++; assert(awakes == 1) }
inline clear_awake() { awake = false; awakes--; assert(awakes == 0) }
inline own(me) { assert(owner == NOBODY); owner = me }

// A locker is a user until its last turn is over. If no waiter was claimed, its use ends with the step that frees the
// mutex: the next locker that takes the mutex may destroy it.
inline leave_use() {
  if
  :: turns == 0 -> users--
  :: else
  fi
}

proctype Locker(byte me) {
  byte turns = TURNS;
  byte next, other;
  bool mine_awake, mine_starving, waited, hands_over;

again:
  turns--;
  mine_awake = false; mine_starving = false; waited = false;

attempt:
  if
  :: atomic { !locked ->  // take_or_spin(): free
       locked = true;
       if :: mine_awake -> clear_awake() :: else fi;
       mine_awake = false;
       own(me);
       goto critical }
  :: atomic { locked && !starving && waiters && !awake && !mine_awake ->  // spins
       set_awake(); mine_awake = true }
     goto attempt
  :: atomic { locked -> skip }
  fi;

  // enqueue()
  claimed[me] = false; woken[me] = false; handed[me] = false;
  take_lock_();
#ifdef ANNOUNCE_LATE
  queue ! me;
  atomic {
    waiters = true;
    if :: mine_awake -> clear_awake() :: else fi; mine_awake = false
  }
#else
  if
  :: atomic { !locked -> skip }
     drop_lock_();
     goto attempt
  :: atomic { locked ->
       waiters = true;
       if :: mine_starving -> starving = true :: else fi;
#ifndef KEEP_AWAKE
       if :: mine_awake -> clear_awake() :: else fi;
#endif
       mine_awake = false;
       // at the front of the queue if it has waited before
       if
       :: waited && len(queue) == 1 -> queue ? other; queue ! me; queue ! other
       :: waited && len(queue) == 2 -> queue ? other; queue ? next; queue ! me; queue ! other; queue ! next
       :: else -> queue ! me
       fi }
  fi;
#endif
  drop_lock_();

  // block()
  if
  :: atomic { woken[me] -> skip }
  :: atomic { !woken[me] && !claimed[me] && give_ups_left > 0 -> give_ups_left--; claimed[me] = true }
     goto give_up
#ifdef GIVE_UP_SILENTLY
  :: atomic { claimed[me] && !woken[me] && give_ups_left > 0 -> give_ups_left-- }
     goto give_up
#endif
  fi;
  if
  :: handed[me] ->
     atomic { assert(locked); own(me) }
     if
     :: atomic { starving = false }  // the locker has not waited for long
     :: skip
     fi;
     goto critical
  :: else
  fi;
  waited = true;
  mine_awake = true;
  if :: mine_starving = true :: skip fi;
  goto attempt;

give_up:
  take_lock_();
  atomic {
    if
    :: queue ?? [eval(me)] -> queue ?? eval(me)
    :: else
    fi;
    if
    :: len(queue) == 0 -> waiters = false; starving = false
    :: else
    fi
  }
  atomic { drop_lock_(); leave_use(); goto returned }

critical:
  atomic { assert(owner == me); owner = NOBODY }

  // unlock_slow(). The first case is the path without waiters.
unlocking:
  if
  :: atomic { locked && (!waiters || (awake && !starving)) -> locked = false; leave_use(); goto returned }
  :: atomic { waiters && (!awake || starving) -> skip }
  fi;
  // next_owner()
  take_lock_();
  hands_over = starving;
  if
  :: hands_over
#ifdef WAKE_TWO
  :: atomic { !hands_over }
#else
  :: atomic { !hands_over && !awake -> set_awake() }
  :: atomic { !hands_over && awake }
     drop_lock_();
     goto unlocking
#endif
  fi;
  atomic {
    next = NOBODY;
    do
    :: next == NOBODY && len(queue) > 0 ->
       queue ? other;
       if
       :: !claimed[other] -> claimed[other] = true; next = other
       :: else
       fi
    :: else -> break
    od
  }
  if
  :: atomic { next == NOBODY ->
       waiters = false; starving = false;
#ifndef WAKE_TWO
       if :: !hands_over -> clear_awake() :: else fi;
#endif
#ifdef FREE_UNDER_LOCK
       locked = false; leave_use()
     }
     drop_lock_();
     goto returned
#else
     }
     drop_lock_();
     goto unlocking
#endif
  :: atomic { next != NOBODY ->
       if :: len(queue) == 0 -> waiters = false; starving = false :: else fi;
       handed[next] = hands_over;
#ifdef WAKE_TWO
       if :: !hands_over -> set_awake() :: else fi;
#endif
#ifdef FREE_AT_HAND_OVER
       locked = false
#else
       if :: !hands_over -> locked = false :: else fi
#endif
     }
  fi;
  drop_lock_();
  atomic { woken[next] = true; leave_use() }  // the last access: to the wait, not to the mutex

returned:
  if
  :: turns > 0 -> goto again
  :: else
  fi
}

init {
  byte i = 0;
  atomic {
    do
    :: i < LOCKERS -> run Locker(i); i++
    :: else -> break
    od
  }
  // All have returned, and nothing is left behind. If a locker waits for ever, Spin reports the deadlock.
  _nr_pr == 1;
  assert(!locked && !waiters && !awake && !starving && !lock_ && len(queue) == 0)
}
