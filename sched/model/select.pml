// Model of select: waiting in several queues at once (sched/sync/detail/select_core.cpp), and how waiters are claimed
// and woken (sched/sync/detail/wait.h).
//
// Each goroutine selects once over two channels without buffers; a plain send or receive is a select with one case. A
// goroutine first takes all locks and searches for a partner. If there is none, it enters all queues, unlocks and
// parks. After its wake-up it leaves the other queues. A timer may end a wait. One step of the model is one access to
// memory that other threads see; actions that they cannot distinguish from it belong to the same step.
//
// What must hold:
//   touched_dead     No thread touches the Wait or the queue entries of a goroutine that has continued: they were on
//                    its stack.
//   claimed_twice    Each wait ends once: with one partner, or with the timer.
//   never_met        When no further step is possible, no sender and receiver wait for each other.
//   wake_is_lost     At that point, no claimed goroutine sleeps.
//   (Spin itself)    No deadlock: a thread that waits for a lock gets it.
//
// Left out, because it does not change the argument: which waiter of a queue comes first (here any); buffers and
// close(), which add one more check under the same locks; events, whose queue is like that of a channel; threads,
// which sleep on the word itself. In the code, all steps on a Wait are atomic and acq_rel, and all others are under a
// lock, so memory is sequentially consistent.
//
// A0, A1, B0, ...: the cases of goroutines A, B and C for channels 0 and 1: 0 none, 1 a send, 2 a receive.
// TIMERS: which goroutines have a timer: A 1, B 2, C 4.
//
// size A0=2 A1=2 B0=1 B1=1 C0=0 C1=0 TIMERS=1: two selects meet in both channels, and a timer
// size A0=2 A1=1 B0=1 B1=2 C0=1 C1=0 TIMERS=0: each may be a sender or a receiver
// size A0=2 A1=2 B0=1 B1=0 C0=0 C1=1 TIMERS=1: two partners and a timer claim the same goroutine
// size A0=2 A1=2 B0=1 B1=1 C0=1 C1=0 TIMERS=3: more partners than needed, and two timers
//
// variant NO_ORDER: B locks the second channel first, and forms a circular wait with A
// variant LOOK_THEN_QUEUE at 2: without locks between the search and queueing, two goroutines miss each other
// variant CLAIM_IN_TWO: two threads both find the wait unclaimed, and both serve it
// variant WAKE_LOOKS_FIRST: the goroutine parks between the waker's read and write, and no thread readies it
// variant PARK_LOOKS_FIRST: the goroutine is woken between its own read and write
// variant NO_LEAVE: a goroutine that stays in a queue is touched when its stack belongs to another one
// variant LEAVE_UNLOCKED: a goroutine that sees it is not queued continues while a partner is still about to claim it
// variant TIMER_LEFT: without a wait for a fire that has begun, the timer touches a Wait that is gone

#define NOBODY 7
#define CLAIMED 1
#define PARKED 2
#define WOKEN 4
#define FIRED 8

byte state[3];            // Wait::state_
byte winner[3] = NOBODY;  // Wait::winner_: which channel
bool locked[2];
byte queue[5];   // each a set of goroutines: senders of 0, receivers of 0, senders of 1, receivers of 1
bool armed[3];   // the timer is in the heap
bool sleeps[3];  // parked, and not readied

// -- Variables for the properties only.
byte ended[3];  // how often the wait was ended
bool gone[3];
bool touched_dead, claimed_twice, never_met, wake_is_lost;

#define QUEUE(c, role) queue[2 * (c) + (role) - 1]
#define PARTNER(role) (3 - (role))
#define BIT(g) (1 << (g))

inline touch(g) { touched_dead = gone[g]; assert(!touched_dead) }

inline count_claim(g) { ended[g]++; claimed_twice = ended[g] > 1; assert(!claimed_twice) }

inline lock(c) { atomic { !locked[c] -> locked[c] = true } }

inline unlock(c) { locked[c] = false }

inline wake(g) {
#ifdef WAKE_LOOKS_FIRST
  atomic { touch(g); before = state[g] };
  atomic { touch(g); state[g] = state[g] | WOKEN };
#else
  atomic { touch(g); before = state[g]; state[g] = state[g] | WOKEN };
#endif
  if
  :: atomic { before & PARKED -> assert(sleeps[g]); sleeps[g] = false }
  :: !(before & PARKED)
  fi
}

inline lock_all() {
#ifdef NO_ORDER
  if
  :: me == 1 && role1 -> lock(1)
  :: else
  fi;
  if
  :: role0 -> lock(0)
  :: else
  fi;
  if
  :: me != 1 && role1 -> lock(1)
  :: else
  fi
#else
  if
  :: role0 -> lock(0)
  :: else
  fi;
  if
  :: role1 -> lock(1)
  :: else
  fi
#endif
}

inline unlock_all() {
  if
  :: role0 -> unlock(0)
  :: else
  fi;
  if
  :: role1 -> unlock(1)
  :: else
  fi
}

inline leave(c, role) {
  if
  :: role == 0 || winner[me] == c
#ifdef LEAVE_UNLOCKED
  :: role != 0 && winner[me] != c && !(QUEUE(c, role) & BIT(me))
  :: role != 0 && winner[me] != c && (QUEUE(c, role) & BIT(me)) ->
#else
  :: role != 0 && winner[me] != c ->
#endif
     lock(c);
     atomic { QUEUE(c, role) = QUEUE(c, role) & ~BIT(me); unlock(c) }
  fi
}

proctype G(byte me, role0, role1; bool timed) {
  byte w, c, role, before;
  lock_all();
look:
  atomic {
    if
    :: role0 && QUEUE(0, PARTNER(role0)) -> c = 0; role = role0
    :: role1 && QUEUE(1, PARTNER(role1)) -> c = 1; role = role1
    :: !(role0 && QUEUE(0, PARTNER(role0))) && !(role1 && QUEUE(1, PARTNER(role1))) -> goto enqueue
    fi;
    select (w : 0 .. 2);
    if
    :: QUEUE(c, PARTNER(role)) & BIT(w)
    :: else -> goto look
    fi;
    touch(w);
    QUEUE(c, PARTNER(role)) = QUEUE(c, PARTNER(role)) & ~BIT(w)
  };
#ifdef CLAIM_IN_TWO
  atomic { touch(w); before = state[w] };
  atomic { touch(w); state[w] = state[w] | CLAIMED };
#else
  atomic { touch(w); before = state[w]; state[w] = state[w] | CLAIMED };
#endif
  if
  :: atomic { before & CLAIMED -> goto look }
  :: atomic { !(before & CLAIMED) -> count_claim(w); winner[w] = c }
  fi;
  unlock_all();
  wake(w);
  goto over;

enqueue:
#ifdef LOOK_THEN_QUEUE
  unlock_all();
  lock_all();
#endif
  atomic {
    if
    :: role0 -> QUEUE(0, role0) = QUEUE(0, role0) | BIT(me)
    :: else
    fi;
    if
    :: role1 -> QUEUE(1, role1) = QUEUE(1, role1) | BIT(me)
    :: else
    fi
  };
  unlock_all();
  armed[me] = timed;
  // The commit of the park, which runs off the stack of the goroutine.
#ifdef PARK_LOOKS_FIRST
  before = state[me];
  atomic { sleeps[me] = !(before & WOKEN); state[me] = state[me] | PARKED };
#else
  atomic { before = state[me]; state[me] = state[me] | PARKED; sleeps[me] = !(before & WOKEN) };
#endif
end_asleep:
  !sleeps[me];
  if
  :: atomic { armed[me] -> armed[me] = false }  // stopped
  :: atomic { !armed[me] && !timed }
#ifdef TIMER_LEFT
  :: atomic { !armed[me] && timed }
#else
  :: atomic { !armed[me] && timed && (state[me] & FIRED) }
#endif
  fi;
#ifndef NO_LEAVE
  leave(0, role0);
  leave(1, role1);
#endif
over:
  gone[me] = true
}

proctype Timer(byte g) {
  byte before;
end:
  atomic { armed[g] -> armed[g] = false };
  atomic { touch(g); before = state[g]; state[g] = state[g] | CLAIMED | FIRED };
  if
  :: before & CLAIMED
  :: atomic { !(before & CLAIMED) -> count_claim(g) }; wake(g)
  fi
}

#define MISSED(c) (QUEUE(c, 1) && QUEUE(c, 2))
#define SLEEPS_ON(g) (sleeps[g] && (state[g] & CLAIMED))

proctype Properties() {
end:
  do
  :: atomic { timeout && (MISSED(0) || MISSED(1)) -> never_met = true; assert(!never_met) }
  :: atomic {
       timeout && (SLEEPS_ON(0) || SLEEPS_ON(1) || SLEEPS_ON(2)) -> wake_is_lost = true; assert(!wake_is_lost)
     }
  od
}

init {
  atomic {
    run G(0, A0, A1, TIMERS & 1);
    run G(1, B0, B1, (TIMERS & 2) != 0);
    if
    :: C0 || C1 -> run G(2, C0, C1, (TIMERS & 4) != 0)
    :: else
    fi;
    if
    :: TIMERS & 1 -> run Timer(0)
    :: else
    fi;
    if
    :: TIMERS & 2 -> run Timer(1)
    :: else
    fi;
    run Properties()
  }
}
