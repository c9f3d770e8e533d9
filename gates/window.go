package gates

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Window returns the end of the window, in UTC and whole microseconds. The result is
// not Valid when no window is set. Its InfinityModifier distinguishes infinity, a window
// that never ends, from -infinity, a window that has always ended.
//
// The end is in RFC 3339 or in PostgreSQL's ISO style for a timestamptz:
// 2026-01-02T03:04:05Z, 2026-01-02 03:04:05.678+05:30, 2026-01-02 03:04:05+00, infinity,
// -infinity. The case of letters and space around it do not matter. The year is 1 to
// 9999. Any other value is a [*ValueError]. So is a time without an offset, which depends
// on the time zone of its reader, and a word such as tomorrow.
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

// ended returns the reason for a refusal if the window's end is before now, else "".
func (v Values) ended(now time.Time) (string, error) {
	until, err := v.Window()
	if err != nil || !until.Valid {
		return "", err
	}
	if before(until, pgtype.Timestamptz{Time: now, Valid: true}) {
		return WindowUntil + "=" + v[WindowUntil], nil
	}
	return "", nil
}

// before compares two times, infinite ones included.
func before(a, b pgtype.Timestamptz) bool {
	return cmp.Or(cmp.Compare(a.InfinityModifier, b.InfinityModifier), a.Time.Compare(b.Time)) < 0
}

// timePattern matches RFC 3339 and the shorter and longer offsets that PostgreSQL
// prints. Its groups are the date, the time and the offset.
var timePattern = regexp.MustCompile(
	`^(\d{4}-\d\d-\d\d)[ t](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(z|[+-](?:0\d|1[0-5])(?::[0-5]\d){0,2})$`)

// parseTime parses a time in a format that Window lists.
func parseTime(value string) (parsed pgtype.Timestamptz, ok bool) {
	word := lowerASCII(strings.Trim(value, space))
	switch word {
	case "infinity":
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}, true
	case "-infinity":
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, true
	}
	part := timePattern.FindStringSubmatch(word)
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
