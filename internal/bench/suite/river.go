package suite

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// riverRescuer is the contender's name.
const riverRescuer = "River"

// riverBatch is how many jobs River's rescuer takes at once, unless its queries
// time out.
const riverBatch = 10_000

// peerRiver has River's rescuer do on River's tables what the library does on its
// own: as many rows, as wide, as many of them stale. It runs in its own batches,
// and in batches as large as the library's.
func peerRiver() Scenario {
	return Scenario{
		Name:  "peer-river",
		About: "River's rescuer on River's tables, and the library",
		Run: func(ctx context.Context, env *Env) (r Result, err error) {
			samples := Samples{}
			turn := min(riverBatch, env.Stale/10)
			for range env.Repeats {
				more, err := env.raceRiver(ctx, turn)
				if err != nil {
					return r, err
				}
				samples.add(more)
			}
			sameBatch := riverInBatchesOf(env.Batch)
			r.faster(samples, sameBatch, atLeast(1.6))
			r.faster(samples, riverRescuer, nil)
			r.rates([]string{library, sameBatch, riverRescuer}, samples, turn)
			return r, nil
		},
	}
}

// riverInBatchesOf names River's rescuer when its batches are not its own.
func riverInBatchesOf(batch int) string {
	return fmt.Sprintf("%s in batches of %d", riverRescuer, batch)
}

// raceRiver has the three take turns, each on a backlog of its own.
func (env *Env) raceRiver(ctx context.Context, turn int) (samples Samples, err error) {
	fixtures := []bed.Fixture{env.scattered().Fixture(), env.river(), env.river()}
	makes := []Make{
		inBatches(env.Batch, library, Library),
		inBatches(env.Batch, riverInBatchesOf(env.Batch), newRiver),
		newRiver,
	}
	err = env.onEach(ctx, fixtures, func(queues []*bed.Queue) error {
		list := make([]Contender, len(makes))
		for i, entrant := range makes {
			one, err := connect(ctx, queues[i], entrant)
			if err != nil {
				return err
			}
			list[i] = one[0]
		}
		race := Race{Warmups: env.Warmups, Rounds: (env.Stale - env.Warmups*warmUp) / turn, Limit: turn}
		samples, err = race.run(ctx, list)
		return err
	})
	return samples, err
}

// sqlFillRiver fills River's table as fill.sql fills the reference schema's.
//
//	$1 rows   bigint
//	$2 stale  bigint
//
//go:embed river.sql
var sqlFillRiver string

// river is River's schema, made by its own migrations.
func (env *Env) river() bed.Fixture {
	return bed.Fixture{
		Name: "river",
		Fill: func(ctx context.Context, conn *pgx.Conn) error {
			if err := migrateRiver(ctx, conn.Config().ConnString()); err != nil {
				return err
			}
			_, err := conn.Exec(ctx, sqlFillRiver, env.Rows, env.Stale)
			return err
		},
		WarmUp: []string{`select count(args) from river_job`},
	}
}

func migrateRiver(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// rescuer makes the calls of River's driver that its rescuer makes, which is
// internal to River, with the same retry policy, and without its pauses between
// batches.
type rescuer struct {
	driver  riverdriver.Executor
	policy  river.ClientRetryPolicy
	horizon time.Time
	after   int64
}

func newRiver(pool *pgxpool.Pool) (Contender, error) {
	rescuer := &rescuer{
		driver:  riverpgxv5.New(pool).GetExecutor(),
		policy:  &river.DefaultClientRetryPolicy{},
		horizon: time.Now().Add(-time.Hour),
	}
	return Contender{Name: riverRescuer, Reap: rescuer.rescue}, nil
}

// rescue is one batch.
func (r *rescuer) rescue(ctx context.Context, limit int) (Count, error) {
	jobs, err := r.driver.JobGetStuck(ctx, &riverdriver.JobGetStuckParams{
		AfterID: r.after, Max: limit, StuckHorizon: r.horizon,
	})
	if err != nil || len(jobs) == 0 {
		return func() (Tally, error) { return Tally{}, nil }, err
	}
	r.after = jobs[len(jobs)-1].ID
	params := &riverdriver.JobRescueManyParams{StuckHorizon: r.horizon}
	var done Tally
	for _, job := range jobs {
		if err := r.decide(params, &done, job); err != nil {
			return nil, err
		}
	}
	_, err = r.driver.JobRescueMany(ctx, params)
	return func() (Tally, error) { return done, nil }, err
}

// benchArgs are the arguments of the jobs, which the rescuer decodes to ask their
// worker for a timeout and a retry policy.
type benchArgs struct {
	Order int    `json:"order"`
	Note  string `json:"note"`
}

// decide adds what is due to a job.
func (r *rescuer) decide(params *riverdriver.JobRescueManyParams, done *Tally, job *rivertype.JobRow) error {
	var metadata struct {
		CancelAttemptedAt time.Time `json:"cancel_attempted_at"`
	}
	if err := json.Unmarshal(job.Metadata, &metadata); err != nil {
		return err
	}
	var args benchArgs
	if err := json.Unmarshal(job.EncodedArgs, &args); err != nil {
		return err
	}
	now := time.Now().UTC()
	fault, err := json.Marshal(rivertype.AttemptError{At: now, Attempt: job.Attempt, Error: "Stuck job rescued"})
	if err != nil {
		return err
	}
	params.ID, params.Error = append(params.ID, job.ID), append(params.Error, fault)
	state, finalized, scheduled := rivertype.JobStateRetryable, (*time.Time)(nil), r.policy.NextRetry(job)
	if job.Attempt >= job.MaxAttempts {
		state, finalized, scheduled = rivertype.JobStateDiscarded, &now, job.ScheduledAt
		done.Moves++
	} else {
		done.Resets++
	}
	params.State = append(params.State, string(state))
	params.FinalizedAt = append(params.FinalizedAt, finalized)
	params.ScheduledAt = append(params.ScheduledAt, scheduled)
	return nil
}
