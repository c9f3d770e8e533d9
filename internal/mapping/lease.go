package mapping

import (
	"fmt"
	"time"
)

// maxSeconds is the longest lease that a column of seconds may ask for, more than 3000
// years. One that is longer, infinite or negative counts as NULL, which is never stale.
const maxSeconds = "100000000000"

// lastStart is a start to which the longest LeaseLength can be added. A later one, which
// is never stale, counts as its own end.
const lastStart = "'290000-01-01Z'"

// lease adds how a leased row is told, and its lease's end.
func (b *builder) lease() {
	column := "q." + b.leaseUntil
	isLeased, leasedAnd := column+" is not null", ""
	if b.state != "" {
		isLeased = "q." + b.state + " = " + b.leased
		leasedAnd = isLeased + " and "
	}
	end, key, before, after, seconds := b.inUTC(column), column, "", "", ""
	if b.q.TimesInUTC {
		before, after = "((", ") at time zone 'utc')"
	}
	switch {
	case b.q.LeaseLength > 0:
		length := "interval '" + Interval(b.q.LeaseLength) + "'"
		end = "(case when " + end + " < " + lastStart + " then " + end + " + " + length + " else " + end + " end)"
		before, after = "("+before, " - "+length+after+")"
	case b.q.LeaseSeconds != "":
		seconds = "q." + b.Column("lease_seconds", b.q.LeaseSeconds)
		leasedAnd += column + " < " + b.now + " and "
		end = "(case when " + seconds + " between 0 and " + maxSeconds + " and " + end + " < '10000-01-01Z' then " +
			end + " + " + seconds + " * interval '1 second' end)"
		key, before, after = end, "", ""
	}
	b.Add("leased_and", leasedAnd)
	b.Add("is_leased", isLeased)
	b.Add("end", end)
	b.Add("key", key)
	b.Add("key(", before)
	b.Add(")key", after)
	b.touch(before, after, seconds)
}

// Interval is a duration as PostgreSQL reads an interval, in whole microseconds. Before
// PostgreSQL 15 no field of it could exceed 32 bits.
func Interval(d time.Duration) string {
	rest := d % time.Hour
	return fmt.Sprintf("%d hours %d.%06d seconds", d/time.Hour, rest/time.Second, (rest % time.Second).Microseconds())
}

// touch adds what makes a row stale, and what writes it as it is. The lease of a
// column of seconds without a length that can be is taken for one of an hour.
func (b *builder) touch(before, after, seconds string) {
	toLeased, renew := "", b.leaseUntil+" = q."+b.leaseUntil
	touch := renew
	if b.state != "" {
		toLeased = b.state + " = " + b.leased + ",\n  "
		touch = b.state + " = q." + b.state
		renew = touch + ",\n  " + renew
	}
	if seconds != "" {
		valid := "case when " + seconds + " between 0 and " + maxSeconds + " then " + seconds + " else 3600 end"
		toLeased += seconds[len("q."):] + " = " + valid + ",\n  "
		before, after = "(", " - ("+valid+") * interval '1 second')"
		if b.q.TimesInUTC {
			before, after = "("+before, after+" at time zone 'utc')"
		}
	}
	b.Add("to_leased", toLeased)
	b.Add("touch", touch)
	b.Add("renew", renew)
	b.Add("start(", before)
	b.Add(")start", after)
}
