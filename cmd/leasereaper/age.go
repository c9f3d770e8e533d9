package main

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// parseAge takes 30d for thirty days of 24 hours, and Go's spelling of shorter
// ones.
func parseAge(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	if days, found := strings.CutSuffix(text, "d"); found {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > uint64(math.MaxInt64/day) {
			return 0, misused("%q is not a number of days", text)
		}
		return time.Duration(n) * day, nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 {
		return 0, misused("%q is not a duration, such as 90s, 30m, 4h or 2d", text)
	}
	return parsed, nil
}
