package gates

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Now is the key under which [Values] hold the clock that a window is judged by:
// the database's, at the start of the transaction, as RFC 3339 in UTC. It is no
// setting, and no source is asked for it. [Table] and [CurrentSetting] give it
// beside a window's end; [Values.Dated] adds it to the values of others.
const Now = "now()"

// nowText is SQL for the text under Now. It does not depend on the session's
// TimeZone and DateStyle.
const nowText = `to_jsonb(now() at time zone 'UTC') #>> '{}' || 'Z'`

// sqlNow reads the clock of the transaction.
const sqlNow = `-- gates.now
select ` + nowText

// Dated returns the values with the clock of tx under [Now]. Where no window is
// set it returns v itself, and asks nothing; else it is one exchange, and v stays
// as it is. A clock that v holds already is not relied on: the values may have
// been kept for long.
func (v Values) Dated(ctx context.Context, tx pgx.Tx) (Values, error) {
	if _, set := v[WindowUntil]; !set {
		return v, nil
	}
	var now string
	if err := tx.QueryRow(ctx, sqlNow).Scan(&now); err != nil {
		return nil, fmt.Errorf("gates: read the database's clock: %w", err)
	}
	dated := maps.Clone(v)
	dated[Now] = now
	return dated, nil
}

// Window returns when the window ends, in UTC and whole microseconds. The result
// is not Valid when no window is set, which bounds nothing; its InfinityModifier
// tells infinity, which never ends, and -infinity, which has ended always.
//
// The end is written as RFC 3339 has it, or as PostgreSQL prints a timestamptz in
// the ISO style: 2026-01-02T03:04:05Z, 2026-01-02 03:04:05.678+05:30,
// 2026-01-02 03:04:05+00, infinity, -infinity; in any case, with space around it,
// in the years 1 to 9999. Anything else is a [*ValueError]: a time without an
// offset depends on who reads it, and words such as tomorrow on when.
func (v Values) Window() (pgtype.Timestamptz, error) {
	value, ok := v[WindowUntil]
	if !ok {
		return pgtype.Timestamptz{}, nil
	}
	until, ok := parseTime(value)
	if !ok {
		return pgtype.Timestamptz{}, &ValueError{WindowUntil, value,
			"is not a time with its offset, such as 2026-01-02T03:04:05Z, nor infinity"}
	}
	return until, nil
}

// ended returns the refusal's reason when the window has ended, or "". At its end
// to the microsecond it has not.
func (v Values) ended() (string, error) {
	until, err := v.Window()
	if err != nil || !until.Valid {
		return "", err
	}
	text, ok := v[Now]
	if !ok {
		return "", ErrNow
	}
	now, ok := parseTime(text)
	if !ok {
		return "", &ValueError{Now, text, "is not the database's clock"}
	}
	if before(until, now) {
		return WindowUntil + "=" + v[WindowUntil], nil
	}
	return "", nil
}

// before compares two times, infinite ones included.
func before(a, b pgtype.Timestamptz) bool {
	return cmp.Or(cmp.Compare(a.InfinityModifier, b.InfinityModifier), a.Time.Compare(b.Time)) < 0
}

// spelling is what PostgreSQL and RFC 3339 agree on, and the shorter and longer
// offsets that PostgreSQL prints. It has the date, the time and the offset.
var spelling = regexp.MustCompile(
	`^(\d{4}-\d\d-\d\d)[ t](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(z|[+-](?:0\d|1[0-5])(?::[0-5]\d){0,2})$`)

// parseTime takes times in the spellings that Window names.
func parseTime(value string) (parsed pgtype.Timestamptz, ok bool) {
	word := lowerASCII(strings.Trim(value, space))
	switch word {
	case "infinity":
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}, true
	case "-infinity":
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, true
	}
	part := spelling.FindStringSubmatch(word)
	if part == nil {
		return pgtype.Timestamptz{}, false
	}
	date, clock, offset := part[1], part[2], strings.ToUpper(part[3])
	layout := time.DateTime + "Z07:00:00"[:max(len(offset), len("Z07"))]
	t, err := time.Parse(layout, date+" "+clock+offset)
	if err != nil || t.Year() < 1 {
		return pgtype.Timestamptz{}, false
	}
	return pgtype.Timestamptz{Time: t.UTC().Round(time.Microsecond), Valid: true}, true
}
