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

/* Who locks rows. */
#define NOBODY 0
#define REDRIVER 3 /* the reapers are 1 and 2 */
#define GONE 4

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

/* What must never be. All of these are false, and only there so that an error shows its name. */
bool two_live_owners;
bool attempts_lost_or_counted_twice;
bool reaped_after_a_close;
bool reaped_what_is_not_stale;
bool changed_by_another_worker;
bool letter_lost_or_left;

#define must(condition, fault) assert((condition) || fault)

#define stale(j) (state[j] == leased && left[j] == 0)

/* BROKEN: a reaper's clock is ahead of the database's. */
#ifdef OWN_CLOCK
#define seems_stale(j) (state[j] == leased)
#else
#define seems_stale(j) stale(j)
#endif
#define claimable(j) (seems_stale(j) && locked[j] == NOBODY)

/* The condition on which a worker's write changes the row. BROKEN: the completion has none. */
#define fence(j) (state[j] == leased && owner[j] == name[w] && attempts[j] == seen[w])
#ifdef NO_FENCE
#define ends(j) true
#else
#define ends(j) fence(j)
#endif

/* What must hold after each step. */
inline check() {
	must(letter[0] == (state[0] == dead), letter_lost_or_left);
	must(letter[JOBS - 1] == (state[JOBS - 1] == dead), letter_lost_or_left);
	must(attempts[0] == reaps[0], attempts_lost_or_counted_twice);
	must(attempts[JOBS - 1] == reaps[JOBS - 1], attempts_lost_or_counted_twice);
	must(job[0] != job[1] || job[0] == JOBS || live[0] == 0 || live[1] == 0, two_live_owners)
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
			must(holder[job[w]] == w + 1, changed_by_another_worker);
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
			must(state[j] == leased && holder[j] == w + 1, changed_by_another_worker);
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

/* Ends a transaction. Its locks are nobody's, or of whoever is next. */
inline unlock(next) {
	if
	:: locked[0] == who -> locked[0] = next
	:: else
	fi;
	if
	:: locked[JOBS - 1] == who -> locked[JOBS - 1] = next
	:: else
	fi;
	bumped[0] = 0; bumped[JOBS - 1] = 0
}

/* BROKEN: the claim takes no row lock. */
inline take(j) {
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

/* Whether a write need not wait for a row's lock. */
#define free(j) (bumped[j] == 0 || locked[j] == NOBODY || locked[j] == who)

/* Writes one job that was claimed, which locks the row, and repeats the condition. */
inline write(j) {
	if
#ifdef NO_CONDITION
	:: bumped[j] > 0 -> locked[j] = who
#else
	:: bumped[j] > 0 && seems_stale(j) -> locked[j] = who
#endif
	:: else -> bumped[j] = 0
	fi
}

inline commit(j) {
	if
	:: bumped[j] > 0 ->
		must(gate, reaped_after_a_close);
		must(stale(j), reaped_what_is_not_stale);
		attempts[j] = bumped[j]; reaps[j]++;
		owner[j] = NOBODY; left[j] = 0;
		if
		:: attempts[j] >= MAX_ATTEMPTS -> state[j] = dead; letter[j] = true
		:: else -> state[j] = ready
		fi
	:: else
	fi
}

/* The server rolls back what a crash left. BROKEN: the rows stay locked. */
#ifdef LOCK_KEPT
#define AFTER_CRASH GONE
#else
#define AFTER_CRASH NOBODY
#endif
inline crash() {
	crashes--; unlock(AFTER_CRASH); unshare()
}

/* A claim locks what is stale, or of one planned job what stands as planned. */
proctype reaper(byte who) {
	byte bumped[JOBS];
	byte j, was, whose;
end:	do
	::
#ifdef GATES_BEFORE
		gate;
#endif
		atomic { /* claim */
			open() && (claimable(0) || claimable(JOBS - 1)) ->
			share();
			if
			:: claimable(0) -> take(0)
			:: else
			fi;
			if
			:: JOBS > 1 && claimable(JOBS - 1) -> take(JOBS - 1)
			:: else
			fi
		};
		goto writes
	:: atomic { /* dry run */
		if
		:: stale(0) -> j = 0
		:: stale(JOBS - 1) -> j = JOBS - 1
		fi;
		was = attempts[j]; whose = owner[j]
	   };
#ifdef GATES_BEFORE
		gate;
#endif
		if
		:: atomic { /* claim of a plan */
			open() ->
			share();
			if
#ifdef NO_CONDITION /* BROKEN: what the plan was made on is not repeated */
			:: locked[j] == NOBODY -> take(j)
#else
			:: claimable(j) && attempts[j] == was && owner[j] == whose -> take(j)
#endif
			:: else
			fi;
			j = 0; was = 0; whose = NOBODY
		   };
		   goto writes
		:: atomic { crashes > 0 -> crashes--; j = 0; was = 0; whose = NOBODY }
		fi
	od;

writes:	if
	:: atomic { /* write */
		free(0) && free(JOBS - 1) ->
		write(0);
		if
		:: JOBS > 1 -> write(JOBS - 1)
		:: else
		fi
	   }
	:: atomic { crashes > 0 -> crash(); goto end }
	fi;
	if
	:: atomic { /* commit */
		true ->
		commit(0);
		if
		:: JOBS > 1 -> commit(JOBS - 1)
		:: else
		fi;
		unlock(NOBODY); unshare(); check(); goto end
	   }
	:: atomic { crashes > 0 -> crash(); goto end }
	fi
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
		run worker(0); run worker(1); run reaper(1); run reaper(2);
		run operator(); run redriver(); run clock()
	}
}

/* Every stale job is reaped or moved in the end, unless its owner is heard of again, if the
 * gate stays open. */
#ifdef LIVENESS
ltl reaped { (<>[] gate) -> [] (stale(0) -> <> !stale(0)) }
#endif
