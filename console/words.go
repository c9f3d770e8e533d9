package console

import (
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// would says what an apply does with a job.
func would(action string) string {
	switch action {
	case reaper.WouldReset: // reaper.ActionReset is the same word
		return "reset"
	case reaper.WouldMove, reaper.ActionMoved:
		return "move to the dead letters"
	}
	return action
}

// meaning explains why a job of a plan, or a dead letter, was skipped.
func meaning(reason string) string {
	return map[string]string{
		reaper.SkipGone:     "there is no such job in the queue any more",
		reaper.SkipRenewed:  "its owner has renewed the lease",
		reaper.SkipClaimed:  "it has been leased again",
		reaper.SkipFinished: "it is not leased any more",
		reaper.SkipReaped:   "another reaper has settled it",
		reaper.SkipLocked:   "somebody holds it locked",
		reaper.SkipChanged:  "its attempts have changed, or what would become of it",
		reaper.SkipNotStale: "its lease has not expired",

		deadletter.SkipAlive:     "the job is in the queue already; somebody has requeued it",
		deadletter.SkipAmbiguous: "several jobs have this id",
		deadletter.SkipNotFound:  "there is no such dead letter",
		deadletter.SkipRedriven:  "it was redriven before",
		deadletter.SkipFiltered:  "the filter leaves it out",
	}[reason]
}

// gateWord says in a few words what a setting is for.
func gateWord(key string) string {
	return map[string]string{
		gates.SubstrateEnabled: "The queue is in use",
		gates.ReaperEnabled:    "The reaper is enabled",
		gates.DryRunOnly:       "The reaper may write (open when false)",
		gates.WindowUntil:      "Applies are refused after this time",
		gates.BackoffBaseSec:   "Seconds before the first retry; 10 if unset",
	}[key]
}
