package suite

import (
	"context"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
)

// diary notes how long each batch took. As a log handler it hears of each apply
// that changed something, after its commit, and takes no part in it.
type diary struct {
	last time.Time
	took []float64 // seconds
}

func (d *diary) write() {
	now := time.Now()
	d.took, d.last = append(d.took, now.Sub(d.last).Seconds()), now
}

// rate is how many rows a second the batches came to.
func (d *diary) rate(batch int) stat.Spread {
	return stat.Of(stat.Each(d.took, func(seconds float64) float64 { return float64(batch) / seconds }))
}

// growth is how many times as long as one of the first tenth a batch of the last
// tenth took.
func (d *diary) growth() stat.Spread {
	tenth := max(1, len(d.took)/10)
	first, last := stat.Of(d.took[:tenth]), stat.Of(d.took[len(d.took)-tenth:])
	return stat.Exactly(last.Median / first.Median)
}

var _ slog.Handler = (*diary)(nil)

// Enabled is part of slog.Handler.
func (*diary) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelInfo }

// Handle is part of slog.Handler.
func (d *diary) Handle(context.Context, slog.Record) error {
	d.write()
	return nil
}

// WithAttrs is part of slog.Handler.
func (d *diary) WithAttrs([]slog.Attr) slog.Handler { return d }

// WithGroup is part of slog.Handler.
func (d *diary) WithGroup(string) slog.Handler { return d }
