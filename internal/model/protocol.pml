/*
 * The protocol between workers, reapers, operators and those who redrive, as steps that
 * the database makes atomic. docs/protocol.md puts each step beside the statement that
 * does it. The script "check" checks this file.
 *
 * A step is what one exchange does. A transaction holds its locks from its first step to
 * its last one, and what it writes is there for others from its commit on. A statement
 * that waits for a lock is a step whose guard is false.
 *
 * Time is what is left of each lease. The clock takes one from all of them at once, and a
 * lease with nothing left is stale.
 *
 * The state ready stands for retry_waiting too: the backoff is over. Names of owners are
 * compared and nothing else, so a new name is one that nobody knows.
 *
 * Each macro at a comment that begins with BROKEN leaves out one thing, and the check must
 * then fail.
 */

#ifndef JOBS
#define JOBS 2
#endif
#define WORKERS 2
#define MAX_ATTEMPTS 2
#define LEASE 1
#define NAMES 5 /* two that workers remember, two in rows, and a new one */

#ifndef CRASHES
#define CRASHES 1 /* of whomever, at each step; a lost connection is one too */
#endif

#define NOBODY 0
#define REAPER 1
#define PLANNER 2
#define REDRIVER 3

mtype = { ready, leased, succeeded, dead };

/* The queue's rows, as they are committed. */
mtype state[JOBS] = ready;
byte attempts[JOBS];
byte owner[JOBS];
byte left[JOBS];   /* of the lease */
byte locked[JOBS]; /* by whose transaction */
bool letter[JOBS]; /* an unredriven one */

/* The settings. */
bool gate = true;
byte sharing;   /* how many transactions have read the gate and hold its lock */
bool exclusive; /* an operator has locked the settings */

/* What workers remember of their claims, each of one job at a time. */
byte job[WORKERS] = JOBS; /* JOBS: of none */
byte name[WORKERS];
byte seen[WORKERS]; /* the attempts */
byte live[WORKERS]; /* what is left of the lease, as far as the worker knows */

/* For the checks alone. */
byte reaps[JOBS];  /* that were committed since the job was new or redriven */
byte holder[JOBS]; /* the worker that has claimed the job last, from 1 */
byte crashes = CRASHES;

#define stale(j) (state[j] == leased && left[j] == 0)

/* BROKEN: a reaper's clock is ahead of the database's. */
#ifdef OWN_CLOCK
#define claimable(j) (state[j] == leased && locked[j] == NOBODY)
#else
#define claimable(j) (stale(j) && locked[j] == NOBODY)
#endif

/* The condition on which a worker's write changes the row. BROKEN: the completion has none. */
#define fence(j) (state[j] == leased && owner[j] == name[w] && attempts[j] == seen[w])
#ifdef NO_FENCE
#define ends(j) true
#else
#define ends(j) fence(j)
#endif

/* What must hold after each step. */
inline check() {
	assert(letter[0] == (state[0] == dead) && attempts[0] == reaps[0]);
	assert(letter[JOBS - 1] == (state[JOBS - 1] == dead) && attempts[JOBS - 1] == reaps[JOBS - 1]);
	/* no two live owners */
	assert(job[0] != job[1] || job[0] == JOBS || live[0] == 0 || live[1] == 0);
}

inline forget() {
	job[w] = JOBS; name[w] = NOBODY; seen[w] = 0; live[w] = 0
}

/* BROKEN: workers share a name. */
inline choose() {
#ifdef OWNER_REUSED
	name[w] = 1;
#else
	name[w] = 1;
	do
	:: name[w] == name[1 - w] || name[w] == owner[0] || name[w] == owner[JOBS - 1] -> name[w]++
	:: else -> break
	od;
	assert(name[w] <= NAMES);
#endif
}

proctype worker(byte w) {
	byte j;
end:	do
	:: atomic { /* claim */
		job[w] == JOBS ->
		if
		:: state[0] == ready && locked[0] == NOBODY -> j = 0
		:: state[JOBS - 1] == ready && locked[JOBS - 1] == NOBODY -> j = JOBS - 1
		fi;
		choose();
		state[j] = leased; owner[j] = name[w]; left[j] = LEASE; holder[j] = w + 1;
		job[w] = j; seen[w] = attempts[j]; live[w] = LEASE;
		check(); j = 0
	}
	:: atomic { /* renew */
		job[w] != JOBS && locked[job[w]] == NOBODY ->
		if
		:: fence(job[w]) ->
			assert(holder[job[w]] == w + 1);
			left[job[w]] = LEASE; live[w] = LEASE
		:: else -> forget()
		fi;
		check()
	}
	:: atomic { /* complete */
		job[w] != JOBS && locked[job[w]] == NOBODY ->
		j = job[w];
		if
		:: ends(j) ->
			assert(state[j] == leased && holder[j] == w + 1);
			state[j] = succeeded; owner[j] = NOBODY; left[j] = 0
		:: else
		fi;
		forget();
		check(); j = 0
	}
	:: atomic { /* crash: the row stays leased */
		job[w] != JOBS && crashes > 0 -> crashes--; forget()
	}
	od
}

/* Ends a transaction: all that it has locked is free. */
inline unlock(who) {
	if
	:: locked[0] == who -> locked[0] = NOBODY
	:: else
	fi;
	if
	:: locked[JOBS - 1] == who -> locked[JOBS - 1] = NOBODY
	:: else
	fi;
	bumped[0] = 0; bumped[JOBS - 1] = 0
}

/* BROKEN: the claim takes no row lock. */
inline take(j, who) {
#ifndef NO_LOCK
	locked[j] = who;
#endif
	bumped[j] = attempts[j] + 1
}

/* BROKEN: the gates are read before the transaction, and their lock is not kept. */
#ifdef GATES_BEFORE
#define open() true
#define share() skip
#define unshare() skip
#else
#define open() (gate && !exclusive)
#define share() sharing++
#define unshare() sharing--
#endif

/* Writes one job that was claimed, and repeats the condition. */
inline write(j) {
	if
	:: bumped[j] > 0 && stale(j) && bumped[j] == attempts[j] + 1 -> skip
	:: else -> bumped[j] = 0
	fi
}

inline commit(j) {
	if
	:: bumped[j] > 0 ->
		assert(gate);     /* no reap after a close */
		assert(stale(j)); /* no live lease is touched, and no job that has ended */
		attempts[j] = bumped[j]; reaps[j]++;
		owner[j] = NOBODY; left[j] = 0;
		if
		:: attempts[j] >= MAX_ATTEMPTS -> state[j] = dead; letter[j] = true
		:: else -> state[j] = ready
		fi
	:: else
	fi
}

/* Settles and commits what a reaper has claimed. */
inline settle(who) {
	if
	:: atomic { true ->
#if !defined(NO_CONDITION) && !defined(OWN_CLOCK)
		write(0);
		if
		:: JOBS > 1 -> write(JOBS - 1)
		:: else
		fi
#endif
	}
		if
		:: atomic { true ->
			commit(0);
			if
			:: JOBS > 1 -> commit(JOBS - 1)
			:: else
			fi;
			unlock(who); unshare(); check()
		}
		:: atomic { crashes > 0 -> crashes--; unlock(who); unshare() }
		fi
	:: atomic { crashes > 0 -> crashes--; unlock(who); unshare() }
	fi
}

/* Apply: it claims all that is stale and not locked. */
proctype reaper() {
	byte bumped[JOBS];
end:	do
	::
#ifdef GATES_BEFORE
		gate;
#endif
		atomic { /* claim */
			open() && (claimable(0) || claimable(JOBS - 1)) ->
			share();
			if
			:: claimable(0) -> take(0, REAPER)
			:: else
			fi;
			if
			:: JOBS > 1 && claimable(JOBS - 1) -> take(JOBS - 1, REAPER)
			:: else
			fi
		}
		settle(REAPER)
	od
}

/* ApplyPlan: a dry run lists a job, and the claim repeats what the plan was made on. */
proctype planner() {
	byte bumped[JOBS];
	byte j, was, whose;
end:	do
	:: atomic { /* dry run */
		if
		:: stale(0) -> j = 0
		:: stale(JOBS - 1) -> j = JOBS - 1
		fi;
		was = attempts[j]; whose = owner[j]
	}
#ifdef GATES_BEFORE
		gate;
#endif
		if
		:: atomic { /* claim */
			open() ->
			share();
			/* BROKEN: the condition is not repeated. */
			if
#ifdef NO_CONDITION
			:: locked[j] == NOBODY -> take(j, PLANNER)
#else
			:: claimable(j) && attempts[j] == was && owner[j] == whose -> take(j, PLANNER)
#endif
			:: else
			fi
		}
			settle(PLANNER)
		:: atomic { crashes > 0 -> crashes-- }
		fi;
		j = 0; was = 0; whose = NOBODY
	od
}

/* Closes the gate, or opens it. */
proctype operator() {
end:	do
	:: atomic { sharing == 0 -> exclusive = true }
		if
		:: atomic { true -> gate = !gate; exclusive = false }
		:: atomic { crashes > 0 -> crashes--; exclusive = false }
		fi
	od
}

/* Redrives. BROKEN: the letter is not marked. */
proctype redriver() {
	byte j;
end:	do
	:: atomic { /* lock the letter and the row */
		if
		:: letter[0] && state[0] == dead && locked[0] == NOBODY -> j = 0
		:: letter[JOBS - 1] && state[JOBS - 1] == dead && locked[JOBS - 1] == NOBODY -> j = JOBS - 1
		fi;
		locked[j] = REDRIVER
	}
		if
		:: atomic { true -> /* revive, mark, commit */
			state[j] = ready; attempts[j] = 0; reaps[j] = 0;
#ifndef NO_MARK
			letter[j] = false;
#endif
			locked[j] = NOBODY; check(); j = 0
		}
		:: atomic { crashes > 0 -> crashes--; locked[j] = NOBODY; j = 0 }
		fi
	od
}

proctype clock() {
end:	do
	:: atomic { left[0] > 0 || left[JOBS - 1] > 0 ->
		left[0] = (left[0] > 0 -> left[0] - 1 : 0);
		if
		:: JOBS > 1 -> left[JOBS - 1] = (left[JOBS - 1] > 0 -> left[JOBS - 1] - 1 : 0)
		:: else
		fi;
		live[0] = (live[0] > 0 -> live[0] - 1 : 0);
		live[1] = (live[1] > 0 -> live[1] - 1 : 0)
	}
	od
}

init {
	atomic {
		run worker(0); run worker(1); run reaper(); run planner();
		run operator(); run redriver(); run clock()
	}
}

/* Every stale job is reaped or moved in the end, unless its owner is heard of again, if the
 * gate stays open. */
#ifdef LIVENESS
ltl reaped { (<>[] gate) -> [] (stale(0) -> <> !stale(0)) }
#endif
