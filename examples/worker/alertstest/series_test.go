package alertstest_test

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// scrapeInterval is how long there is between two values of a series, and between two
// evaluations of a rule.
const scrapeInterval = time.Minute

// database is a Prometheus with some series in it.
type database struct {
	series []promql.Series // from the zero of Unix time on
	end    time.Time       // of the longest
}

// load reads series in the notation of promtool: the values of each, by its name and
// labels. "0+2x10" begins at 0 and grows 10 times by 2; "_" is a scrape that had no value.
func load(t *testing.T, written map[string]string) *database {
	t.Helper()
	db := &database{}
	for name, values := range written {
		set, sequence, err := promQL.ParseSeriesDesc(name + " " + values)
		require.NoError(t, err, name)
		s := promql.Series{Metric: set}
		at := time.Unix(0, 0)
		for _, value := range sequence {
			at = at.Add(scrapeInterval)
			if !value.Omitted {
				s.Floats = append(s.Floats, promql.FPoint{T: at.UnixMilli(), F: value.Value})
			}
		}
		db.series = append(db.series, s)
		if at.After(db.end) {
			db.end = at
		}
	}
	return db
}

// Querier implements [storage.Queryable].
func (db *database) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: db.find}, nil
}

func (db *database) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range db.series {
		if matches(s.Metric, matchers) {
			found = append(found, promql.NewStorageSeries(s))
		}
	}
	return &seriesSet{left: found}
}

// seriesSet is what was found, one after the other.
type seriesSet struct {
	now  storage.Series
	left []storage.Series
}

func (s *seriesSet) At() storage.Series                { return s.now }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.now, s.left = s.left[0], s.left[1:]
	return true
}

func matches(set labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(set.Get(m.Name)) {
			return false
		}
	}
	return true
}

// fires reports whether a rule fires at some time: one of its series was there at each
// evaluation for as long as it says.
func (db *database) fires(t *testing.T, rule rulefmt.Rule) bool {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{Timeout: time.Minute, MaxSamples: 1_000_000, Parser: promQL})
	query, err := engine.NewRangeQuery(t.Context(), db, nil, rule.Expr, time.Unix(0, 0), db.end, scrapeInterval)
	require.NoError(t, err)
	defer query.Close()
	matrix, err := query.Exec(t.Context()).Matrix()
	require.NoError(t, err)
	for _, s := range matrix {
		since := int64(0)
		for i, point := range s.Floats {
			if i == 0 || point.T-s.Floats[i-1].T > scrapeInterval.Milliseconds() {
				since = point.T
			}
			if point.T-since >= time.Duration(rule.For).Milliseconds() {
				return true
			}
		}
	}
	return false
}
