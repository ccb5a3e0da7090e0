// Model of the parking protocol of sched/rt/idle/idle.cpp: Ms go to sleep without missing work.
//
// Submitters are external threads: they push to the GRQ and wake an M (inject(), S1-S4). Ms run the work that they
// find, search for more, spin, and go idle (I1-I4). An M that finds work while it spins searches for more
// (stop_spinning). An M may give its P away for good (hand_off_p). If S4 finds no M, the maker provides one. Labels are
// the steps of idle.cpp. One step of the model is one access to memory that other threads see; actions that they cannot
// distinguish from it belong to the same step.
//
// What must hold:
//   work_is_lost     When every thread is at rest, there is no work in the GRQ while a P is idle. An M is at rest when
//                    it sleeps, and when it runs a goroutine: the goroutine may run for ever, and sysmon, which would
//                    notice that, is not in the model.
//   count_is_wrong   `spinning` is the number of Ms that count as spinning, plus Ms just woken to spin, plus S4s in
//                    progress; so it is never negative.
//   p_is_lost        At rest, each P is idle or held. Assertions where Ps change hands check that no thread takes a P
//                    that another thread holds.
//   (Spin itself)    No deadlock: a thread waits only where it may wait.
//
// Left out, because it cannot lose work or does not change the argument:
//   - local queues: their work has a holder, which is awake. The spinning of thieves is modelled: an M that has found
//     nothing in the GRQ may begin to spin, whether rule 5 permits it or not;
//   - timers and I/O: arming a timer from outside is S1-S4, like a push. Waiting for them is not modelled, except that
//     an M may wake up by itself (TIMEOUTS);
//   - spare Ms made ahead: they only make it rarer that S4 finds no M;
//   - the order of idle Ms: they are alike, so the first is always woken;
//   - surplus Ps, and the end of the runtime.
// Memory is sequentially consistent, because the memory orders in the code make these accesses so. The WEAK_ variants
// give each thread a store buffer of one entry: other threads see a write late, but before the writer's next locked
// instruction.
//
// PS, MS: the number of Ps, and the maximum number of Ms. BUSY: the initial number of Ms, each at work on a P.
// A, B: how often each submitter submits. TIMEOUTS, HANDOFFS: how often an M may wake up by itself, and may give its P
// away.
//
// size PS=2 MS=2 BUSY=2 A=1 B=1 TIMEOUTS=0 HANDOFFS=0: all Ms at work
// size PS=2 MS=3 BUSY=1 A=1 B=1 TIMEOUTS=0 HANDOFFS=0: an M at work, an idle P, and Ms still to be made
// size PS=1 MS=2 BUSY=1 A=2 B=1 TIMEOUTS=1 HANDOFFS=0: an M may wake up by itself just as it is taken
// size PS=1 MS=3 BUSY=1 A=1 B=1 TIMEOUTS=0 HANDOFFS=1: an M may give its P away
//
// variant NO_RECHECK: without I3, no thread sees work submitted before I1, when S2 saw no idle P
// variant RECHECK_FIRST: with I3 before I2, S3 may rely on a spinning M that has already checked the GRQ
// variant WEAK_SUBMITTER: with S1 late, S2 may see no idle P and I3 still see no work
// variant WEAK_IDLER: with I1 and I2 late, I3 may see no work although S2 sees no idle P, or S3 sees an M that spins
// variant NO_LOOK_AFTER_SPIN: S3 may have relied on an M that has just found other work
// variant NO_MAKER: S4 takes the P of an M that is about to sleep, finds no M to wake, and puts the P back
// variant S4_GIVES_UP: S3 may have relied on an S4 that found no P, and the Ms that had the Ps checked the GRQ before

#define NOBODY 7
#define AT_REST (active_threads == 0)

#define AWAY(p) (!idle[p] && holder[p] == NOBODY)
#if PS == 1
#define IDLE idle[0]
#define ANY_AWAY AWAY(0)
#else
#define IDLE (idle[0] + idle[1])
#define ANY_AWAY (AWAY(0) || AWAY(1))
#endif
#if MS == 2
#define SUM(of) (of[0] + of[1])
#else
#define SUM(of) (of[0] + of[1] + of[2])
#endif

// -- What the threads share.
byte grq;                  // amount of work in the GRQ
bool idle[PS];             // idle_ps: the bits, one word
short spinning;
bool on_list[MS];          // idle_ms
bool note[MS];
byte next_p[MS] = NOBODY;
bool next_spinning[MS];
bool requested;            // kRunOne
byte made = BUSY;          // number of Ms
byte timeouts_left = TIMEOUTS;
byte handoffs_left = HANDOFFS;
bool begun;                // the first submitter has made its first step

// -- Read by the properties only, and by each M for itself.
bool spins[MS];            // M::spinning
byte holder[PS] = NOBODY;  // P::m
byte s4s;                  // S4s in progress that have incremented `spinning`
byte active_threads = BUSY + 2;  // not at rest and not finished; plus wakes, requests and late writes in progress

// -- Memory.
#if defined(WEAK_SUBMITTER) || defined(WEAK_IDLER)
#define WEAK
#define GRQ_PUSHED 1
#define SPINNING_LOWERED 2
#define IDLE_RAISED 3  // plus the number of the P
byte late[MS + 2];  // what each thread has written, and no other thread sees yet

inline locked(me) {
  if
  :: late[me] == GRQ_PUSHED -> grq++; active_threads--
  :: late[me] == SPINNING_LOWERED -> spinning--; spins[me] = false; active_threads--
  :: late[me] >= IDLE_RAISED -> idle[late[me] - IDLE_RAISED] = true; active_threads--
  :: else
  fi;
  late[me] = 0
}
inline write_late(me, what) { locked(me); late[me] = what; active_threads++ }

proctype StoreBuffer(byte me) {
end:
  do
  :: atomic { late[me] != 0 -> locked(me) }
  od
}
#else
inline locked(me) { skip }
#endif

// -- idle_ps. A search for an idle P visits one P after the other (`at`); a P already passed may become idle.
inline take() {
  assert(holder[at] == NOBODY);
  idle[at] = false
}
inline put(p) {
  assert(AWAY(p));
  idle[p] = true;
  p = NOBODY
}

// -- idle_ms.
inline pop() {
  if
  :: on_list[0] -> other = 0
  :: !on_list[0] && on_list[1] -> other = 1
#if MS > 2
  :: !on_list[0] && !on_list[1] && on_list[2] -> other = 2
#endif
  fi;
  on_list[other] = false
}
inline wake_with_p(p, spin) {
  next_p[other] = p;
  next_spinning[other] = spin;
  p = NOBODY;
  wake()
}
inline wake() {
  note[other] = true;
  other = NOBODY;
  active_threads++
}

// From S2, whose label is the caller's, to the caller's `woken`.
inline wake_one(me) {
  if
  :: atomic { IDLE == 0 -> goto woken }
  :: IDLE != 0
  fi;
S3:
#ifdef WEAK
  if  // a plain read: the next step would make the late write of this thread visible
  :: atomic { spinning != 0 -> goto woken }
  :: spinning == 0
  fi;
#endif
  if
  :: atomic { spinning != 0 -> locked(me); goto woken }
  :: atomic { spinning == 0 -> locked(me); spinning = 1; s4s++ }
  fi;
S4:
  // No P is left: the Ms that took them may have checked the GRQ before the work of a submitter that saw this count at
  // S3. So this S4 decrements the count and begins again.
  do
  :: atomic { at < PS && idle[at] -> locked(me); take(); other_p = at; at = 0; break }
  :: d_step { at < PS && !idle[at] -> at++ }
  :: atomic {
       at == PS -> locked(me); at = 0; spinning--; s4s--;
#ifdef S4_GIVES_UP
       goto woken
#else
       goto S2
#endif
     }
  od;
  if
  :: atomic { SUM(on_list) > 0 -> locked(me); pop() };
     atomic { s4s--; wake_with_p(other_p, true); goto woken }
  :: atomic { SUM(on_list) == 0 -> locked(me); put(other_p) };
     d_step { locked(me); spinning--; s4s-- };
#ifndef NO_MAKER
     atomic { locked(me); active_threads = active_threads + !requested; requested = true };
#endif
     goto woken
  fi
}

proctype Submitter(byte me; byte work) {
  byte at, other = NOBODY, other_p = NOBODY;
S1:
  atomic {
    me == MS || A != B || begun;  // if both submitters are alike, the same one may always be first
    begun = true;
    work--;
#ifdef WEAK_SUBMITTER
    write_late(me, GRQ_PUSHED)
#else
    locked(me);
    grq++
#endif
  };
S2:
  wake_one(me);
woken:
  atomic {
    if
    :: work > 0 -> goto S1
    :: else -> active_threads--
    fi
  }
}

// A new M begins without a P, as in wait_for_p().
proctype M(byte me; byte p) {
  byte at, other = NOBODY, other_p = NOBODY;
  if
  :: p != NOBODY -> goto running
  :: else -> goto I3
  fi;

search:
  if
  :: atomic { grq > 0 -> locked(me); grq--; goto found }
  :: grq == 0
  fi;
  if
  :: atomic { !spins[me] -> locked(me); spinning++; spins[me] = true }
  :: true
  fi;

I1:
#ifdef WEAK_IDLER
  atomic { assert(holder[p] == me); holder[p] = NOBODY; write_late(me, IDLE_RAISED + p); p = NOBODY };
#else
  atomic { locked(me); assert(holder[p] == me); holder[p] = NOBODY; put(p) };
#endif
#ifdef RECHECK_FIRST
  if
  :: grq > 0 -> goto acquire
  :: grq == 0
  fi;
#endif
I2:
  if
#ifdef WEAK_IDLER
  :: atomic { spins[me] -> write_late(me, SPINNING_LOWERED) }
#else
  :: atomic { spins[me] -> locked(me); spinning--; spins[me] = false }
#endif
  :: !spins[me]
  fi;
#if defined(NO_RECHECK) || defined(RECHECK_FIRST)
  goto I4;
#endif

I3:
  if
  :: grq > 0
  :: atomic { grq == 0 -> goto I4 }
  fi;
acquire:
  do
  :: atomic { at < PS && idle[at] -> locked(me); take(); p = at; holder[p] = me; at = 0; break }
  :: d_step { at < PS && !idle[at] -> at++ }
  :: atomic { at == PS -> at = 0; goto I4 }
  od;
  if  // try_spinning() refuses only while another M spins
  :: atomic { !spins[me] -> locked(me); spinning++; spins[me] = true; goto search }
  :: atomic { spins[me] || spinning > 0 -> goto search }
  fi;

I4:
  atomic { locked(me); on_list[me] = true; active_threads-- };
end_asleep:
  if
  :: atomic { note[me] -> goto awake }
  :: atomic { timeouts_left > 0 -> timeouts_left--; active_threads++ };
     if
     :: atomic { on_list[me] -> locked(me); on_list[me] = false; goto I3 }
     :: atomic { !on_list[me] -> active_threads-- }  // it was taken from the list: the wake is on its way
     fi
  fi;
  note[me];
awake:
  atomic {
    locked(me);
    note[me] = false;
    assert(!on_list[me] && !spins[me]);
    spins[me] = next_spinning[me];
    next_spinning[me] = false;
    p = next_p[me];
    next_p[me] = NOBODY;
    if
    :: p == NOBODY -> goto I3
    :: else -> assert(AWAY(p)); holder[p] = me; goto search
    fi
  };

found:
  if
  :: atomic { spins[me] -> locked(me); spinning--; spins[me] = false }
  :: atomic { !spins[me] -> goto running }
  fi;
#ifdef NO_LOOK_AFTER_SPIN
  goto running;
#endif
  if
  :: grq > 0
  :: atomic { grq == 0 -> goto running }
  fi;
S2:
  wake_one(me);
woken:
  if
  :: p == NOBODY -> goto gone
  :: p != NOBODY
  fi;

running:
  active_threads--;
  if
  :: atomic { active_threads++; goto search }
  :: atomic { handoffs_left > 0 -> handoffs_left--; active_threads++; holder[p] = NOBODY }
  fi;
  // hand_off_p(). This M then waits for the goroutine locked to it, which is not in the model.
  if
  :: grq > 0 ->
     if
     :: atomic { SUM(on_list) > 0 -> locked(me); pop() };
        atomic { wake_with_p(p, false); goto gone }
     :: SUM(on_list) == 0
     fi
  :: grq == 0
  fi;
  atomic { locked(me); put(p) };
  if
  :: atomic { grq > 0 -> goto S2 }
  :: grq == 0
  fi;
gone:
  active_threads--
}

proctype Maker() {
  byte other = NOBODY;
end:
  do
  :: atomic {
       requested -> requested = false;
       if
       :: SUM(on_list) > 0 -> pop()
       :: SUM(on_list) == 0 -> goto look
       fi
     };
     atomic { wake(); active_threads-- }
  od;
look:  // as a submitter does: an M that was just made may have done the work
  if
  :: atomic { IDLE == 0 -> active_threads--; goto end }
  :: IDLE > 0
  fi;
  if
  :: atomic { grq == 0 -> active_threads--; goto end }
  :: atomic { grq > 0 && made < MS -> run M(made, NOBODY); made++; goto end }
  :: atomic { grq > 0 && made == MS }
  fi;
end_refused:  // tries repeatedly
  atomic { SUM(on_list) > 0 -> active_threads = active_threads - requested; requested = true; goto end }
}

active proctype Properties() {
  bool work_is_lost, count_is_wrong, p_is_lost;
end:
  do
  :: atomic { AT_REST && grq > 0 && IDLE > 0 -> work_is_lost = true; assert(!work_is_lost) }
  :: atomic {
       spinning != SUM(spins) + SUM(next_spinning) + s4s ->
       count_is_wrong = true; assert(!count_is_wrong)
     }
  :: atomic { AT_REST && ANY_AWAY -> p_is_lost = true; assert(!p_is_lost) }
  od
}

init {
  byte i;
  atomic {
#ifdef WEAK
    for (i : 0 .. MS + 1) { run StoreBuffer(i) }
#endif
    for (i : 0 .. PS - 1) {
      if
      :: i < BUSY -> holder[i] = i; run M(i, i)
      :: else -> idle[i] = true
      fi
    }
    run Maker();
    run Submitter(MS, A);
    run Submitter(MS + 1, B)
  }
}
