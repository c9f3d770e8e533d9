package console

import (
	"strconv"
	"strings"
	"time"
)

// parseAge reads a duration as people write it: 90s, 30m, 36h, 7d, or several of
// these. Empty is 0.
func parseAge(text string) (time.Duration, error) {
	text = strings.ReplaceAll(strings.TrimSpace(text), " ", "")
	if text == "" {
		return 0, nil
	}
	days, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		days, rest = "0", text
	}
	const mostDays = 36500
	n, err := strconv.ParseFloat(days, 64)
	if err != nil || n < 0 || n > mostDays {
		return 0, badAge(text)
	}
	age := time.Duration(n * float64(24*time.Hour))
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil || more < 0 {
			return 0, badAge(text)
		}
		age += more
	}
	return age, nil
}

func badAge(text string) error {
	return badRequest("\"" + text + "\" is no duration. Write it as in 90s, 30m, 36h or 7d.")
}
