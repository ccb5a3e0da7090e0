// Model of a descriptor that one goroutine reads (netpoll/poll/descriptor.cpp, netpoll/poll/wait_slot.cpp,
// netpoll/poll/fd_mutex.cpp): park, event, close, deadline, and the next use of the same memory.
//
// A peer sends portions and may end the stream. The kernel reports each change once, as edges do, to whichever thread
// polls next. A goroutine reads; one that finds nothing waits. Meanwhile the deadline may pass, and is then moved, and
// somebody closes the descriptor. Its memory gets the next connection, with a reader and a peer of its own, while threads
// that poll, and the timer, may still be about to deliver what concerned the first. One step of the model is one access to memory that
// other threads see, or one system call; actions that they cannot distinguish from it belong to the same step.
//
// What must hold:
//   wake_is_lost     When no further step is possible, no goroutine sleeps that has something to read, or whose
//                    descriptor is closed, or whose deadline has passed.
//   readied_twice    Whoever takes a goroutine out of the slot is the only one, and finds it parked.
//   number_reused    No system call is made with a number that has been closed.
//   slot_reused      The memory gets its next use when nobody waits there.
//   wrong_reason     A read fails only with a reason of its own connection.
//   (Spin itself)    No deadlock: whoever is not asleep goes on.
//
// Left out, because it does not change the argument: writers, whose slot is another one of the same kind; contexts, which
// end waits as deadlines do; those who wait for the lock of a side (FdMutex is a mutex: sched/model/mutex.pml); the pool;
// the end of the runtime. In the code, all steps on the slot and on what ends waits are sequentially consistent, or write the word
// that both sides read; so memory is sequentially consistent here.
//
// ITEMS: portions that each peer sends. READS: the most reads of each reader. POLLERS: threads that poll at once. TIMERS: how
// often the deadline of the first connection passes. USES: connections. END: each peer ends its stream.
//
// size ITEMS=2 READS=3 POLLERS=1 TIMERS=0 USES=1 END=1: the end of the stream comes with the last bytes, or behind them
// size ITEMS=1 READS=2 POLLERS=2 TIMERS=1 USES=1 END=0: two threads poll, and the deadline passes
// size ITEMS=2 READS=3 POLLERS=1 TIMERS=2 USES=1 END=0: it passes, is moved, and passes again
// size ITEMS=1 READS=1 POLLERS=1 TIMERS=1 USES=2 END=0: the memory is used again
// size ITEMS=1 READS=1 POLLERS=2 TIMERS=0 USES=2 END=0: with two threads that are late
//
// variant LOOK_THEN_ANNOUNCE at 2: what ends a wait comes between the look and the announcement, and finds nobody
// variant WAKE_THEN_MARK at 2: who closes finds nobody, and the reader does not see the mark yet
// variant COMMIT_BY_STORE: the goroutine parks over an event that came since its announcement
// variant EVENT_FOR_WAITERS_ONLY: an event that comes between the read and the announcement is forgotten
// variant HUNG_UP_LATE: the reader takes a short read for a drained socket, and the edge was the last one
// variant SHORT_IS_DRAINED: every short read counts as drained, also after the end was reported
// variant NO_REFERENCES: close() gives the number back while a reader is about to use it
// variant NO_HOLDERS at 4: the memory gets its next use while the reader of the last one is still in it
// variant TAKE_BY_STORE at 2: event and deadline both find the goroutine, and both ready it
// variant GIVE_UP_WHEN_WOKEN at 2: a wake-up counts as the reason, and a late timer ends the wait of the next connection

#define NIL 0
#define READY 1
#define WAITING 2
#define PARKED 3  // and, behind it, the use

byte slot;        // WaitSlot::state_
bool drained;     // Descriptor::drained_
bool hung_up;     // Descriptor::hung_up_
bool closed;      // of FdMutex
byte references;  // of FdMutex
byte holders;     // Descriptor::holders_
bool expired;     // Deadline
byte sequence;    // of the event cookie, and which use this is

bool is_open;     // the number, in the kernel
bool edge;        // has not been reported
byte received;
bool ended;

bool sleeps[2];

// -- Variables for the properties only.
bool inside[2];  // between lock() and unlock()
bool wake_is_lost, readied_twice, number_reused, slot_reused, wrong_reason;

// A loop of compare-and-exchange is one step: that of the exchange which succeeds, or of the look that ends it.
// WaitSlot::wake(): takes the goroutine out of the slot, and leaves `after` there.
inline take(after, nothing_to_do) {
#ifdef TAKE_BY_STORE
  before = slot;
  if
  :: nothing_to_do -> before = NIL
  :: else -> slot = after
  fi;
#else
  atomic {
    before = slot;
    if
    :: nothing_to_do -> before = NIL
    :: else -> slot = after
    fi
  };
#endif
  atomic {
    if
    :: before >= PARKED ->
       readied_twice = !sleeps[before - PARKED];
       assert(!readied_twice);
       sleeps[before - PARKED] = false
    :: else
    fi;
    before = NIL
  }
}

// With a reason that has been written.
inline wake_for_reason() { take(NIL, before == NIL || before == READY) }

inline wake_for_event() {
#ifdef EVENT_FOR_WAITERS_ONLY
  take(READY, before == READY || before == NIL)
#else
  take(READY, before == READY)
#endif
}

// FdMutex::close() has been called, and nobody has a reference any more: Descriptor::close_number()
inline close_number() {
  sequence++;
  atomic { is_open = false; edge = false; received = 0; ended = false };
  drop_holder()
}

inline drop_holder() {
  atomic {
    holders--;
    if
    :: holders == 0 ->
       slot_reused = slot >= WAITING || inside[0] || inside[1];
       assert(!slot_reused);
       drained = false; hung_up = false; expired = false; slot = NIL; closed = false; references = 0;
       if
       :: sequence < USES -> run Use(sequence)
       :: else
       fi
    :: else
    fi
  }
}

inline release() {
  atomic { references--; last = closed && references == 0 };
  if
  :: last -> close_number()
  :: else
  fi
}

#define MUST_NOT_WAIT (closed || expired)

// Descriptor::wait(): sets `event` if an edge was consumed; otherwise there is a reason.
inline wait() {
  do
  :: true ->
#ifdef LOOK_THEN_ANNOUNCE
     if
     :: MUST_NOT_WAIT -> break
     :: else
     fi;
#endif
     atomic {  // announce()
       event = slot == READY;
       if
       :: event -> slot = NIL; break
       :: else -> slot = WAITING
       fi
     };
#ifndef LOOK_THEN_ANNOUNCE
     parks = !closed;
     parks = parks && !expired;
#else
     parks = true;
#endif
     if
     :: parks ->
#ifdef COMMIT_BY_STORE
        atomic { slot = PARKED + me; sleeps[me] = true };
#else
        atomic { if :: slot == WAITING -> slot = PARKED + me; sleeps[me] = true :: else fi };
#endif
end_asleep:
        atomic { !sleeps[me] -> parks = false }
     :: else
     fi;
     atomic { event = slot == READY; slot = NIL };  // retract()
     if
#ifdef GIVE_UP_WHEN_WOKEN
     :: true -> wrong_reason = !event && !MUST_NOT_WAIT; assert(!wrong_reason); break
#else
     :: event || MUST_NOT_WAIT -> break
     :: else
#endif
     fi
  od
}

proctype Reader(byte me) {
  byte reads;
  bool event, parks, last, got;
  do
  :: reads == READS -> break
  :: else ->
     reads++;
     // FdMutex::lock(). A descriptor that has been closed belongs to its owner until dispose().
     atomic {
       if
       :: closed || sequence != me -> break
       :: else -> references++; inside[me] = true
       fi
     };
     got = false;
     do
     :: drained && !hung_up ->
        wait();
        drained = false;
        if
        :: event
        :: else -> break
        fi
     :: else ->
        // read(2): all there is, which is less than there is room for.
        atomic {
          number_reused = !is_open || sequence != me;
          assert(!number_reused);
          if
          :: received > 0 || ended ->
             got = true;
             last = received == 0;
             received = 0;
#ifdef SHORT_IS_DRAINED
             hung_up = false;
#endif
             drained = true
          :: else
          fi
        };
        if
        :: got -> break
        :: else
        fi;
        wait();
        if
        :: event -> drained = false
        :: else -> break
        fi
     od;
     // A deadline that has passed is moved before the next read.
     atomic { inside[me] = false; if :: got && last -> reads = READS :: else fi };
     release();
     if
     :: !got -> expired = false
     :: else
     fi
  od
}

proctype Peer(byte use) {
  byte sent;
  do
  :: atomic { sequence == use && is_open && sent < ITEMS -> sent++; received++; edge = true }
  :: atomic { sequence == use && is_open && sent == ITEMS && END && !ended -> ended = true; edge = true }
  :: atomic { sequence != use || !is_open || (sent == ITEMS && (!END || ended)) -> break }
  od
}

proctype Poller() {
  byte cookie, before;
  bool is_end;
end:
  do
  :: atomic { edge -> edge = false; is_end = ended; cookie = sequence };
     if
     :: cookie == sequence ->
#ifndef HUNG_UP_LATE
        if
        :: is_end -> hung_up = true
        :: else
        fi;
#endif
        wake_for_event();
#ifdef HUNG_UP_LATE
        if
        :: is_end -> hung_up = true
        :: else
        fi
#endif
     :: else
     fi;
     atomic { cookie = 0; is_end = false }
  od
}

proctype Timer() {
  byte fired, before;
  do
  :: true -> break
  :: atomic { fired < TIMERS && sequence == 0 && !expired -> expired = true; fired++ };
     wake_for_reason()
  od
}

// Opens the descriptor for its next use, and closes it at some time.
proctype Use(byte use) {
  byte before;
  bool last;
  atomic { is_open = true; holders = 2; run Reader(use); run Peer(use) };
  if
  :: true -> goto stays_open
  :: true
  fi;
#ifdef WAKE_THEN_MARK
  wake_for_reason();
  atomic { closed = true; references++ };
#else
  atomic { closed = true; references++ };
  wake_for_reason();
#endif
#ifdef NO_REFERENCES
  references--;
  close_number();
#else
  release();
#endif
#ifdef NO_HOLDERS
  atomic { holders = 1 };
#endif
  drop_holder();
stays_open:
  skip
}

#define LOST(g) (sleeps[g] && (received > 0 || ended || closed || expired))

proctype Properties() {
end:
  do
  :: atomic { timeout && (LOST(0) || LOST(1)) -> wake_is_lost = true; assert(!wake_is_lost) }
  od
}

init {
  byte i;
  atomic {
    do
    :: i < POLLERS -> run Poller(); i++
    :: else -> break
    od;
    if
    :: TIMERS > 0 -> run Timer()
    :: else
    fi;
    run Properties();
    run Use(0)
  }
}
