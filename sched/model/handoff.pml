// Model of the handoff protocol (sched/rt/slice/handoff.h) and of suspension (sched/rt/slice/lane.cpp).
//
// Sysmon takes a P from an M that does not come back to the runtime. It asks for the P of an M that is inside the
// runtime at every scan. It suspends and resumes threads that run without a P.
//
// Ms run goroutines: user code, entering the runtime, using the P, leaving the runtime. Sysmon takes Ps, asks for Ps,
// asks threads without a P to suspend, withdraws such requests, and resumes suspended threads, in any order. The
// signal handler runs on the M's thread between any two steps of the M, with any delay. One step of the model is one
// access to memory that other threads see; actions that they cannot distinguish from it belong to the same step.
//
// What must hold:
//   (assertions)      A P is used by one thread at a time, by its owner, and is not given away meanwhile.
//   stopped_with_p    A suspended thread has no P and is not inside the runtime, where it may hold a lock.
//   ask_in_vain       While sysmon waits for an answer, a signal or a handler is on its way.
//   book_is_wrong     Sysmon's record of a thread is true: the thread is suspended, or has no request. So the number
//                     of threads that burn CPU without a P is the number in sysmon's records.
//   goroutine_is_lost When no further step is possible, all goroutines have ended. Sysmon may have ended at any moment
//                     before, as it does at the end of the runtime.
//   p_is_lost         At that point, all Ps are idle, too.
//   (Spin itself)     No deadlock: a thread waits only where it may wait. A suspended thread may not wait for ever.
//
// Memory is as on x86-64. The decisive variable is in_rt, a plain store: it stays in the store buffer of its M until
// the buffer is drained, by the M's next locked instruction, by membarrier(), or by itself. The thread itself, and so
// the handler, sees it at once. All other writes are seen at once: an M's writes to its P lie in the buffer before the
// in_rt = 0 that lets others read them; the rest are locked instructions.
//
// Left out, because it cannot violate the properties or is shown elsewhere:
//   - how Ms sleep: an M without work wakes up when there are work and an idle P (parking.pml);
//   - differences between goroutines: the GRQ is a number, and local queues are part of it;
//   - the reasons of sysmon: it does whatever the protocol allows, at any time. So there is no pick counter: sysmon may
//     give up on any M from which it could take a P, as if the counter had moved;
//   - how the handler notifies sysmon: sysmon scans anyway;
//   - locked threads, and surplus Ps.
//
// PS, MS, GS: the numbers of Ps, Ms and goroutines. CALLS: the total number of calls into the runtime that do not end a
// goroutine. TRIES, GIVES, ASKS: how often sysmon tries to take a P, asks an M for its P, and asks a thread to suspend.
// FENCED: without membarrier(). Ms execute a fence instead, because of a bit that is never cleared in `taken`.
//
// size PS=1 MS=1 GS=1 CALLS=3 TRIES=3 GIVES=0 ASKS=3 FENCED=0: one thread: P taken, asked, resumed, repeatedly
// size PS=1 MS=1 GS=1 CALLS=2 TRIES=2 GIVES=0 ASKS=2 FENCED=1: without membarrier()
// size PS=1 MS=2 GS=2 CALLS=2 TRIES=2 GIVES=0 ASKS=1 FENCED=0: a P moves back and forth
// size PS=2 MS=2 GS=2 CALLS=0 TRIES=2 GIVES=0 ASKS=1 FENCED=0: an M comes back and gets another P
// size PS=1 MS=2 GS=2 CALLS=0 TRIES=2 GIVES=0 ASKS=2 FENCED=0: two threads without a P, both may be suspended
// size PS=1 MS=1 GS=1 CALLS=3 TRIES=2 GIVES=2 ASKS=1 FENCED=0: one thread, which is also asked for its P
// size PS=1 MS=2 GS=2 CALLS=1 TRIES=1 GIVES=1 ASKS=1 FENCED=0: and another thread gets that P
// size PS=1 MS=1 GS=1 CALLS=2 TRIES=1 GIVES=1 ASKS=1 FENCED=1: without membarrier()
//
// variant NO_MEMBARRIER: sysmon reads an older in_rt than that in the store buffer, and takes a P that is in use
// variant NO_LOCK: an M that enters during an attempt uses its P while sysmon, which has read in_rt = 0, takes it
// variant NO_P_CHECK at 4: the M that sysmon saw with the P has another P by now, and loses that one
// variant LATE_USE: after in_rt = 0 the P may belong to another M
// variant CLEAR_BY_STORE: a plain store that clears kGone erases a kTaking that has just been set
// variant GONE_FIRST: an M that finds kGone does not wait for the lock, and sysmon erases the P that the M gets
// variant FENCE_LOST at 2: taken = kGone erases kFence, and the M enters without a fence from then on
// variant FENCE_TOO_LATE at 2: a value of `taken` read before the fence says nothing about an attempt
// variant WAIT_WHILE_NOT_RUN: a thread resumed and asked again before it has checked its state sleeps for ever
// variant TWO_VALUED_TAKEN: a late signal finds kTaking and suspends a thread that still has its P
// variant HANDLER_IGNORES_IN_RT: a thread is suspended inside the runtime, or with a P that it has just got
// variant HANDLER_IGNORES_GONE: a late signal suspends a thread that has a P again
// variant STOP_BY_STORE: the handler overwrites a withdrawal, and sysmon does not know of the suspended thread
// variant WITHDRAW_BY_STORE: sysmon overwrites kStopped, and the thread continues to sleep
// variant SIGNAL_FIRST: the signal comes before its request, and the request waits for ever
// variant GIVE_BEFORE_DECISION at 6: an M that is asked for its P gives it away while sysmon is taking it
// variant GIVE_SAYS_NOTHING at 6: an M without kGone uses the P that it gave away as if it still had it
// variant GIVE_BY_STORE at 8: taken = kGone erases kFence, and the M enters without a fence from then on
// variant END_FORGETS_ASKED: a late signal suspends a thread after sysmon has ended

#define NOBODY 7
#define SYSMON 6
#define GIVER 5

// M::taken
#define TAKING 1
#define GONE 2
#define FENCE 4
#define GIVE 8

// M::suspend
#define RUN 0
#define ASKED 1
#define STOPPED 2

// -- What the threads share.
byte grq = GS - PS;  // goroutines without an M
byte suspend[MS];
byte taken[MS] = FENCED * FENCE;
byte p[MS] = NOBODY;       // M::p
byte holder[PS] = NOBODY;  // P::m; a P with holder NOBODY is idle
bool locked[MS];           // handoff_mutex
bool signal[MS];           // pending
bool handling[MS];         // the handler runs on the thread, and other signals are blocked
bool sleeping[MS];         // in the futex of the handler

// in_rt, as the thread has written it last, and the number of its writes in the store buffer. The values alternate,
// and two writes are as good as more: only the view of the other threads matters, which may differ at one time and not
// at another.
bool in_rt[MS] = true;
byte late[MS];
#define IN_RT_SEEN(m) (in_rt[m] ^ (late[m] & 1))
#define DRAIN(m) late[m] = 0

// -- Sysmon's own.
byte book[MS] = RUN;  // sysmon's record of `suspend`

// -- Variables for the properties only.
bool in_use[PS];
byte calls_left = CALLS;
byte ended;  // number of goroutines that have ended
bool sysmon_at_rest;

#if PS == 1
#define IDLE (holder[0] == NOBODY)
#define ALL_IDLE IDLE
#else
#define IDLE (holder[0] == NOBODY || holder[1] == NOBODY)
#define ALL_IDLE (holder[0] == NOBODY && holder[1] == NOBODY)
#endif

// Takes an idle P. The caller knows that there is one.
inline take_idle_p(me) {
  assert(p[me] == NOBODY);
  DRAIN(me);
  if
  :: holder[0] == NOBODY -> mine = 0
#if PS > 1
  :: holder[1] == NOBODY -> mine = 1
#endif
  fi;
  holder[mine] = me
}

inline use_p(me) {
  atomic {
    mine = p[me];
    assert(mine != NOBODY && holder[mine] == me && !in_use[mine]);
    in_use[mine] = true
  };
  atomic { assert(holder[mine] == me); in_use[mine] = false }
}

inline write_in_rt(me, value) {
  atomic { late[me] < 2 -> assert(in_rt[me] != value); in_rt[me] = value; late[me]++ }
}

inline clear_gone(me) {
#ifdef CLEAR_BY_STORE
  taken[me] = taken[me] & FENCE
#else
  atomic { taken[me] = taken[me] & ~GONE; DRAIN(me) }
#endif
}

proctype StoreBuffer(byte me) {
end:
  do
  :: atomic { late[me] > 0 -> late[me]-- }
  od
}

proctype M(byte me) provided (!handling[_pid - 1]) {
  byte mine = NOBODY;
  bool give;
  if
  :: p[me] == NOBODY -> goto sleep
  :: p[me] != NOBODY -> goto leave
  fi;

enter:
  write_in_rt(me, true);
#if FENCED && !defined(FENCE_TOO_LATE)
  if
  :: taken[me] & FENCE -> DRAIN(me)
  :: !(taken[me] & FENCE)
  fi;
#endif
#ifdef GIVE_BEFORE_DECISION
  if
  :: atomic { taken[me] & GIVE -> give = true; goto give_away }
  :: !(taken[me] & GIVE)
  fi;
#endif
  // The M keeps the value of kGive that it reads here. A kGive set later waits for the next enter.
  if
  :: atomic { taken[me] & TAKING -> give = (taken[me] & GIVE) != 0 }
  :: atomic { (taken[me] & (TAKING | GONE)) == GONE -> give = (taken[me] & GIVE) != 0; goto without_p }
  :: atomic { !(taken[me] & (TAKING | GONE)) -> give = (taken[me] & GIVE) != 0; goto inside }
  fi;
#ifndef NO_LOCK
  atomic { !locked[me] -> locked[me] = true; DRAIN(me) };
  locked[me] = false;
#endif
  // An attempt that begins now sees in_rt.
  if
  :: atomic { taken[me] & GONE -> goto without_p }
  :: atomic { !(taken[me] & GONE) -> goto inside }
  fi;

inside:
#ifdef FENCE_TOO_LATE
  DRAIN(me);
#endif
  if
  :: atomic { !give -> skip }
  :: atomic { give -> goto give_away }
  fi;
use:
  use_p(me);
  atomic {
    if
    :: calls_left > 0 -> calls_left--; goto leave
    :: calls_left > 0 -> calls_left--; DRAIN(me); grq++; goto search  // a parking call
    :: ended++; goto search
    fi
  };

give_away:
  atomic { give = false; taken[me] = taken[me] & ~GIVE; DRAIN(me) };
  if
  :: p[me] != NOBODY
  :: goto use  // the request was meant for another goroutine
  fi;
  atomic { !locked[me] -> locked[me] = true; DRAIN(me) };
  atomic {
    mine = p[me];
    assert(mine != NOBODY && holder[mine] == me && !in_use[mine]);
    p[me] = NOBODY;
    holder[mine] = GIVER
  };
#ifdef GIVE_BY_STORE
  atomic { taken[me] = GONE; DRAIN(me) };
#elif !defined(GIVE_SAYS_NOTHING)
  atomic { taken[me] = taken[me] | GONE; DRAIN(me) };
#endif
  locked[me] = false;
#ifdef GIVE_SAYS_NOTHING
  atomic { holder[mine] = NOBODY; mine = NOBODY; goto leave };
#endif
  atomic { holder[mine] = NOBODY; mine = NOBODY; goto without_p };

without_p:
  if
  :: atomic { give -> give = false; taken[me] = taken[me] & ~GIVE; DRAIN(me) }
  :: atomic { !give -> skip }
  fi;
  if
  :: atomic { calls_left > 0 -> calls_left--; goto leave }
  :: atomic { IDLE -> take_idle_p(me) };  // a parking call; the end of a goroutine is one, too
     p[me] = mine;
     clear_gone(me);
     goto inside
  :: atomic { grq++; DRAIN(me) };
     clear_gone(me);
     goto sleep
  fi;

search:
  if
  :: atomic { grq > 0 -> grq--; DRAIN(me); goto leave }
  :: grq == 0
  fi;
  atomic { mine = p[me]; p[me] = NOBODY };
  atomic { assert(holder[mine] == me && !in_use[mine]); holder[mine] = NOBODY; mine = NOBODY; DRAIN(me) };
sleep:
end_asleep:
  atomic { grq > 0 && IDLE -> take_idle_p(me) };
  p[me] = mine;
  goto search;

leave:
#ifdef LATE_USE
  write_in_rt(me, false);
  if
  :: mine != NOBODY -> use_p(me)
  :: mine == NOBODY
  fi;
  atomic { mine = NOBODY; goto enter }
#else
  atomic { write_in_rt(me, false); mine = NOBODY; goto enter }
#endif
}

// The kernel starts it when a signal is pending. While it runs on the thread, the M makes no step.
proctype Handler(byte me) {
end:
  atomic { signal[me] && !handling[me] -> signal[me] = false; handling[me] = true };
  if
  :: atomic { suspend[me] != ASKED -> goto done }
  :: suspend[me] == ASKED
  fi;
#ifndef HANDLER_IGNORES_IN_RT
  if
  :: atomic { in_rt[me] -> goto refuse }
  :: !in_rt[me]
  fi;
#endif
#if defined(TWO_VALUED_TAKEN)
#define MAY_STOP (taken[me] & (TAKING | GONE))
#elif defined(HANDLER_IGNORES_GONE)
#define MAY_STOP (!(taken[me] & TAKING))
#else
#define MAY_STOP ((taken[me] & (TAKING | GONE)) == GONE)
#endif
  if
  :: MAY_STOP
  :: atomic { !(MAY_STOP) -> goto refuse }
  fi;
  if
#ifdef STOP_BY_STORE
  :: atomic { suspend[me] = STOPPED; DRAIN(me) }
#else
  :: atomic { suspend[me] == ASKED -> suspend[me] = STOPPED; DRAIN(me) }
  :: atomic { suspend[me] != ASKED -> DRAIN(me); goto done }
#endif
  fi;
  do  // the kernel compares, and puts the thread to sleep, in one step
#ifdef WAIT_WHILE_NOT_RUN
  :: atomic { suspend[me] != RUN -> sleeping[me] = true };
     !sleeping[me]
  :: atomic { suspend[me] == RUN -> goto done }
#else
  :: atomic { suspend[me] == STOPPED -> sleeping[me] = true };
     !sleeping[me]
  :: atomic { suspend[me] != STOPPED -> goto done }
#endif
  od;
refuse:
  // The request may be a newer one, made after the one seen above was withdrawn. It is refused, too.
  atomic {
    DRAIN(me);
    if
    :: suspend[me] == ASKED -> suspend[me] = RUN
    :: suspend[me] != ASKED
    fi
  };
done:
  atomic { handling[me] = false; goto end }
}

// Sysmon goes back to `rest` after every action.
proctype Sysmon() {
  byte m, q;
  byte tries_left = TRIES, gives_left = GIVES, asks_left = ASKS;
rest:
  atomic { m = 0; q = 0; sysmon_at_rest = true };
  atomic {
    if
    :: tries_left > 0 ->
       select (q : 0 .. PS - 1);
       m = holder[q];
       if
       :: m < MS -> tries_left--; sysmon_at_rest = false; goto trial
       :: else -> goto rest
       fi
    :: true ->
       select (m : 0 .. MS - 1);
       if
       :: asks_left > 0 && book[m] == RUN && (taken[m] & GONE) -> asks_left--; sysmon_at_rest = false; goto ask
       :: book[m] == ASKED -> sysmon_at_rest = false; goto look
       :: book[m] == STOPPED -> sysmon_at_rest = false; goto resume
       :: else -> goto rest
       fi
#if GIVES
    :: gives_left > 0 ->
       select (m : 0 .. MS - 1);
       taken[m] = taken[m] | GIVE;
       gives_left--;
       goto rest
#endif
    :: true -> sysmon_at_rest = false; goto finish
    fi
  };

trial:
  atomic { !locked[m] -> locked[m] = true };
  taken[m] = taken[m] | TAKING;
#if !FENCED && !defined(NO_MEMBARRIER)
  DRAIN(m);
#endif
  if
  :: atomic { IN_RT_SEEN(m) -> goto let_go }
  :: !IN_RT_SEEN(m)
  :: goto let_go  // the pick counter has moved
  fi;
#ifndef NO_P_CHECK
  if
  :: p[m] == q
  :: atomic { p[m] != q -> goto let_go }
  fi;
#endif
#ifdef GONE_FIRST
  taken[m] = GONE | (taken[m] & (FENCE | GIVE));
#endif
  atomic { p[m] = NOBODY; assert(!in_use[q]); holder[q] = SYSMON };
#ifdef FENCE_LOST
  taken[m] = GONE;
#elif !defined(GONE_FIRST)
  taken[m] = GONE | (taken[m] & (FENCE | GIVE));
#endif
  locked[m] = false;
  atomic { holder[q] = NOBODY; goto rest };
let_go:
  taken[m] = taken[m] & ~TAKING;
  atomic { locked[m] = false; goto rest };

ask:
#ifdef SIGNAL_FIRST
  signal[m] = true;
#endif
  atomic { assert(suspend[m] == RUN); suspend[m] = ASKED; book[m] = ASKED };
#ifndef SIGNAL_FIRST
  signal[m] = true;
#endif
  goto rest;

look:
  if
  :: atomic { suspend[m] == RUN -> book[m] = RUN; goto rest }
  :: atomic { suspend[m] == STOPPED -> book[m] = STOPPED; goto rest }
  :: suspend[m] == ASKED  // sysmon withdraws it: the M has come back, or no longer burns CPU
  fi;
#ifdef WITHDRAW_BY_STORE
  atomic { suspend[m] = RUN; book[m] = RUN; goto rest };
#else
  atomic {
    if
    :: suspend[m] == ASKED -> suspend[m] = RUN; book[m] = RUN
    :: suspend[m] != ASKED
    fi;
    goto rest
  };
#endif

resume:
  atomic { suspend[m] = RUN; book[m] = RUN };
  atomic { sleeping[m] = false; goto rest };

finish:
  // In any state: a request that is not withdrawn may be answered when sysmon no longer resumes threads.
  atomic {
    if
    :: suspend[m] == STOPPED -> suspend[m] = RUN; book[m] = STOPPED  // an exchange
#ifdef END_FORGETS_ASKED
    :: suspend[m] == RUN || suspend[m] == ASKED
#else
    :: suspend[m] == RUN || suspend[m] == ASKED -> suspend[m] = RUN; book[m] = RUN
#endif
    fi
  };
  atomic {
    if
    :: book[m] == STOPPED -> sleeping[m] = false; book[m] = RUN
    :: book[m] != STOPPED
    fi;
    if
    :: m + 1 < MS -> m++; goto finish
    :: m + 1 == MS -> sysmon_at_rest = true
    fi
  }
}

#define STOPPED_WITH_P(m) (suspend[m] == STOPPED && (p[m] != NOBODY || in_rt[m]))
// No thread is about to act on a request. A signal does not count while a sleeping handler blocks it.
#define QUIET(m) (sysmon_at_rest && ((handling[m] && sleeping[m]) || (!handling[m] && !signal[m])))
#define ASK_IN_VAIN(m) (QUIET(m) && suspend[m] == ASKED)
#define BOOK_IS_WRONG(m) \
  (QUIET(m) && ((book[m] != ASKED && book[m] != suspend[m]) || sleeping[m] != (suspend[m] == STOPPED)))

#if MS == 1
#define ANY(what) what(0)
#else
#define ANY(what) (what(0) || what(1))
#endif

proctype Properties() {
  bool stopped_with_p, ask_in_vain, book_is_wrong, goroutine_is_lost, p_is_lost;
end:
  do
  :: atomic { ANY(STOPPED_WITH_P) -> stopped_with_p = true; assert(!stopped_with_p) }
  :: atomic { ANY(ASK_IN_VAIN) -> ask_in_vain = true; assert(!ask_in_vain) }
  :: atomic { ANY(BOOK_IS_WRONG) -> book_is_wrong = true; assert(!book_is_wrong) }
  :: atomic { timeout && ended != GS -> goroutine_is_lost = true; assert(!goroutine_is_lost) }
  :: atomic { timeout && !ALL_IDLE -> p_is_lost = true; assert(!p_is_lost) }
  od
}

init {
  byte i;
  atomic {
    for (i : 0 .. PS - 1) { p[i] = i; holder[i] = i }
    for (i : 0 .. MS - 1) { run M(i) }  // first, so that _pid is known
    for (i : 0 .. MS - 1) { run Handler(i); run StoreBuffer(i) }
    run Sysmon();
    run Properties()
  }
}
