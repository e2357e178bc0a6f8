/* SPDX-License-Identifier: BSL-1.0 */
/* Sleep and wake (sched/README.md): no submitted strand waits while workers sleep, and closing the engine wakes all.
   Every statement is one step of a sequentially consistent machine: the fences s3 and n2 are assumed, tests/model's
   Relacy model of the same name shows that they are enough.

   Broken variants, each of which must be reported:
     -DNO_SECOND_LOOK    s4 is left out
     -DNO_NUMBER         the notifier does not change the epoch
     -DWAITERS_FIRST     n3 comes before n1
     -DCLOSES_SILENTLY   the flag is set behind the bell */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef SUBMITTERS
#define SUBMITTERS 2
#endif

byte list = 0;      /* strands submitted and not taken */
byte taken = 0;
byte waiters = 0;
byte epoch = 0;
byte asleep = 0;    /* blocked in the kernel */
chan wakes = [0] of { bit };  /* futex_wake */
bool closing = false;
byte submitted = 0; /* submitters that have done all */
byte gone = 0;      /* workers that have seen `closing` */

/* futex_wake(epoch, 1): one step with the blocking of others. */
inline wake_one() {
  atomic {
    if
    :: asleep > 0 -> asleep--; wakes ! 1
    :: else
    fi
  }
}

inline notify_one() {
#ifndef NO_NUMBER
  atomic { assert(epoch < 255); epoch++ }
#endif
  wake_one()
}

proctype worker() {
  byte key;
  bool found;
again:
  /* look_around: one step, behind the lock of the list */
  found = false;
  atomic {
    if
    :: list > 0 -> list--; found = true
    :: else
    fi
  }
  if
  :: found -> goto work
  :: else
  fi;
  waiters++;        /* s1 */
  key = epoch;      /* s2; s3 is the fence */
#ifndef NO_SECOND_LOOK
  atomic {          /* s4 */
    if
    :: list > 0 && !closing -> list--; found = true
    :: else
    fi
  }
#endif
  if
  :: found -> waiters--; goto work
  :: else
  fi;
  if
  :: closing -> waiters--; goto leave
  :: else
  fi;
  do                /* s5: the comparison is one step with the blocking */
  :: atomic { epoch == key -> asleep++ }; wakes ? _
  :: epoch != key -> break
  od;
  waiters--;
  if
  :: closing -> goto leave
  :: else -> goto again
  fi;
work:
  taken++;
  if                /* where one found work there may be more */
  :: waiters > 0 -> notify_one()
  :: else
  fi;
  goto again;
leave:
  gone++
}

proctype submitter() {
#ifdef WAITERS_FIRST
  bool somebody;
  somebody = (waiters > 0);
  list++;
  if
  :: somebody -> notify_one()
  :: else
  fi;
#else
  list++;           /* n1; n2 is the fence */
  if                /* n3 */
  :: waiters > 0 -> notify_one()
  :: else
  fi;
#endif
  submitted++
}

/* The caller of the runs: closes the engine when all have ended. */
proctype caller() {
  byte i;
  (taken == SUBMITTERS && submitted == SUBMITTERS);
#ifndef CLOSES_SILENTLY
  closing = true;
#endif
  atomic { assert(epoch < 255); epoch++ }
  do                /* futex_wake(epoch, INT_MAX) */
  :: asleep > 0 -> wake_one()
  :: else -> break
  od;
#ifdef CLOSES_SILENTLY
  closing = true;
#endif
  (gone == WORKERS);
  assert(waiters == 0 && asleep == 0 && list == 0)
}

init {
  byte i;
  atomic {
    for (i : 1 .. WORKERS) { run worker() }
    for (i : 1 .. SUBMITTERS) { run submitter() }
    run caller()
  }
}
