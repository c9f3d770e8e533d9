package interleave_test

import (
	"fmt"
	"slices"
)

// moves: each moved job has one letter of its own from the same transaction, no letter is
// without one, and in the end a job is dead if it has an unredriven letter, and only then.
func (h *history) moves() []string {
	var faults []string
	letters := map[string]int{} // by transaction and job
	for _, c := range h.changes {
		switch {
		case c.moves():
			letters[c.xid+" "+c.id()]++
		case c.place == "job_dead_letter" && c.old == nil:
			letters[c.xid+" "+c.new.Job.id()]--
		case c.place == "job_dead_letter" && c.new == nil && c.old.RedrivenAt == nil:
			letters[c.xid+" "+c.old.Job.id()]++
		case c.place == "job_queue" && c.new == nil:
			letters[c.xid+" "+c.id()]--
		}
	}
	for job, n := range letters {
		if n != 0 {
			faults = append(faults, "jobs without a letter less letters without a job, by transaction and job: "+
				fmt.Sprintf("%s: %d", job, n))
		}
	}
	return append(faults, h.agreement()...)
}

// agreement compares the jobs with the letters that are there in the end.
func (h *history) agreement() []string {
	var faults []string
	unredriven := map[string]int{}
	for _, letter := range h.letters {
		if letter.RedrivenAt == nil {
			unredriven[letter.Job.id()]++
		}
	}
	for _, job := range h.jobs {
		want := 0
		if job.State == "dead_letter" {
			want = 1
		}
		if n := unredriven[job.id()]; n != want {
			faults = append(faults, fmt.Sprintf("job %s is %s and has %d letters", job.id(), job.State, n))
		}
		delete(unredriven, job.id())
	}
	for job, n := range unredriven {
		faults = append(faults, fmt.Sprintf("%d letters of job %s, which is gone", n, job))
	}
	return faults
}

// redrives: a letter is marked once, by the transaction that sends its job back, and no
// job is sent back without that.
func (h *history) redrives() []string {
	var faults []string
	marks, revivals := map[string]int{}, map[string]int{}
	for _, c := range h.changes {
		switch {
		case c.revives():
			revivals[c.xid+" "+c.id()]++
		case c.place == "job_dead_letter" && c.old != nil && c.new != nil && c.new.RedrivenAt != nil:
			marks[c.xid+" "+c.new.Job.id()]++
			if c.old.RedrivenAt != nil {
				faults = append(faults, "a letter was redriven twice: "+c.id())
			}
		}
	}
	for job, n := range revivals {
		if n != 1 || marks[job] != 1 {
			faults = append(faults, fmt.Sprintf("sent back %d times, and marked %d letters, by transaction and job: %s",
				n, marks[job], job))
		}
	}
	return faults
}

// rejections: a failure is of a job that something rejects.
func (h *history) rejections() []string {
	var faults []string
	for who, o := range h.outcomes {
		if o.apply == nil {
			continue
		}
		for _, failure := range o.apply.Failures {
			if !slices.Contains(h.scenario.rejected, failure.JobID) {
				faults = append(faults, fmt.Sprintf("%c: nothing rejects the job that has failed: %v", 'a'+who, failure))
			}
		}
	}
	return faults
}
