package reaper

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// NegativeInfinity returns the time that stands for PostgreSQL's -infinity. It is
// before every timestamptz; compare it with [time.Time.Equal].
func NegativeInfinity() time.Time { return time.UnixMicro(math.MinInt64).UTC() }

const negInfinity = "-infinity"

// fromServer turns a timestamptz into a time in UTC. Infinity becomes the last time
// of its kind, as NegativeInfinity is the first.
func fromServer(t pgtype.Timestamptz) time.Time {
	switch t.InfinityModifier {
	case pgtype.NegativeInfinity:
		return NegativeInfinity()
	case pgtype.Infinity:
		return time.UnixMicro(math.MaxInt64).UTC()
	}
	return t.Time.UTC()
}

// toServer is the reverse of fromServer.
func toServer(t time.Time) pgtype.Timestamptz {
	if t.Equal(NegativeInfinity()) {
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	return pgtype.Timestamptz{Time: t, Valid: true}
}

// timestamp is a time in the JSON. The years 1 to 9999 are RFC 3339 in UTC. What is
// later has no such form and is written as the last instant that has one,
// "9999-12-31T23:59:59.999999Z". What is earlier has the server's form, since a
// plan must hold a lease's end as it is: "0044-03-15T12:00:00Z BC", "-infinity".
// Years of five digits and more are read as well.
type timestamp time.Time

// lastInstant returns the last instant, in PostgreSQL's microseconds, that RFC 3339
// has a form for.
func lastInstant() time.Time {
	return time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC).Add(-time.Microsecond)
}

// MarshalJSON writes the string.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.String())
}

// String returns the form described at the type.
func (t timestamp) String() string {
	utc := time.Time(t).UTC()
	switch {
	case utc.Equal(NegativeInfinity()):
		return negInfinity
	case utc.After(lastInstant()):
		utc = lastInstant()
	case utc.Year() < 1:
		return fmt.Sprintf("%04d%s BC", 1-utc.Year(), utc.Format(afterYear))
	}
	return utc.Format(time.RFC3339Nano)
}

// afterYear is RFC 3339 without its year.
const afterYear = "-01-02T15:04:05.999999999Z07:00"

// UnmarshalJSON reads the string, in any zone.
func (t *timestamp) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	parsed, err := parseTimestamp(s)
	if err != nil {
		return fmt.Errorf("reaper: %q is not a timestamp", s)
	}
	*t = timestamp(parsed.UTC())
	return nil
}

// leapCycle is the number of years after which the calendar repeats.
const leapCycle = 400

// parseTimestamp lets package time parse the year of the same calendar between
// 2000 and 2399, since it takes years of four digits only, and then moves to the
// year that was meant.
func parseTimestamp(s string) (time.Time, error) {
	if s == negInfinity {
		return NegativeInfinity(), nil
	}
	s, bc := strings.CutSuffix(s, " BC")
	digits, rest, _ := strings.Cut(s, "-")
	year, err := strconv.Atoi(digits)
	if err != nil {
		return time.Time{}, err
	}
	if bc {
		year = 1 - year
	}
	twin := 2000 + (year%leapCycle+leapCycle)%leapCycle
	parsed, err := time.Parse(time.RFC3339Nano, fmt.Sprintf("%d-%s", twin, rest))
	if err != nil {
		return time.Time{}, err
	}
	return parsed.AddDate(year-twin, 0, 0), nil
}
