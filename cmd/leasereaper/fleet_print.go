package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

func (t *tool) fleetDryRun(ctx context.Context, f *fleet.Fleet) error {
	outcomes, err := f.DryRun(ctx, 1)
	if err != nil {
		return err
	}
	return printOutcomes(t, outcomes, []string{"STALE", "TO MOVE", "OLDEST"}, func(r *reaper.DryRunResult) []string {
		oldest := none
		if len(r.Jobs) > 0 {
			oldest = moment(r.Jobs[0].LeaseUntil, r.EvaluatedAt)
		}
		return []string{strconv.Itoa(r.StaleLeaseCount), strconv.Itoa(r.MoveCount), oldest}
	}, nil)
}

func (t *tool) fleetVerify(ctx context.Context, f *fleet.Fleet) error {
	outcomes, err := f.Verify(ctx)
	if err != nil {
		return err
	}
	return printOutcomes(t, outcomes, []string{"PROBLEMS", "WORST"}, func(r *reaper.Report) []string {
		worst := none
		if len(r.Problems) > 0 {
			worst = fmt.Sprintf("%s %s: %s", r.Problems[0].Severity, r.Problems[0].Code, clean(r.Problems[0].Object))
		}
		return []string{strconv.Itoa(len(r.Problems)), worst}
	}, faults)
}

func (t *tool) fleetDrain(ctx context.Context, f *fleet.Fleet, batch int) error {
	if batch < 1 {
		return misused("--batch is below 1")
	}
	outcomes, err := f.Drain(ctx, t.actor, batch)
	if err != nil {
		return err
	}
	return printOutcomes(t, outcomes, []string{"RESET", "MOVED", "REJECTED", "REFUSED"},
		func(r *reaper.DrainResult) []string {
			return []string{
				strconv.Itoa(r.ResetCount), strconv.Itoa(r.DeadLetterCount), strconv.Itoa(r.FailedCount),
				cell(r.Reason),
			}
		},
		func(r *reaper.DrainResult) error {
			return errors.Join(refused(r.Refused, r.Reason), turnedAway(r.FailedCount))
		})
}

func (t *tool) fleetClose(ctx context.Context, f *fleet.Fleet) error {
	outcomes, err := f.CloseGates(ctx, t.actor)
	var open *fleet.NotClosedError
	if err != nil && !errors.As(err, &open) {
		return err
	}
	for i := range outcomes {
		if outcomes[i].Err != nil {
			outcomes[i].Result = nil // not closed
		}
	}
	return printOutcomes(t, outcomes, []string{"GATE"}, func(*struct{}) []string { return []string{"closed"} }, nil)
}

// printOutcomes prints a line for each member. A result may be a fault too.
func printOutcomes[T any](
	t *tool, outcomes []fleet.Outcome[T], header []string, row func(*T) []string, fault func(*T) error,
) error {
	rows := make([][]string, len(outcomes))
	bad := 0
	for i, o := range outcomes {
		if o.Err != nil || fault != nil && fault(o.Result) != nil {
			bad++
		}
		rows[i] = outcomeRow(o, len(header), row)
	}
	if t.json {
		if err := t.printJSON(outcomes); err != nil {
			return err
		}
	} else {
		printTable(t.out, slices.Concat([]string{"DATABASE"}, header, []string{"ERROR"}), rows)
	}
	if bad > 0 {
		return fmt.Errorf("%d of %s failed", bad, count(len(outcomes), "database", "databases"))
	}
	return nil
}

// outcomeRow is a member's line: its name, the cells of its result, and its error.
func outcomeRow[T any](o fleet.Outcome[T], width int, row func(*T) []string) []string {
	cells, said := make([]string, width), none
	if o.Result != nil { // with an error too: what was committed before it
		cells = row(o.Result)
	}
	if o.Err != nil {
		said = message(o.Err)
	}
	return slices.Concat([]string{clean(o.Member)}, cells, []string{said})
}
