package gates

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// defaultBackoffBaseSec is the backoff base in seconds when it is unset.
	defaultBackoffBaseSec = 10

	// MaxBackoffBaseSec is the largest backoff base in seconds: ten years of
	// 365 days.
	MaxBackoffBaseSec = 10 * 365 * 24 * 60 * 60
)

// space has the characters that PostgreSQL's input functions skip around a value.
const space = " \t\n\v\f\r"

// BackoffBase returns the backoff base in seconds, 10 when it is unset. A value
// that is not a whole number from 0 to [MaxBackoffBaseSec] is a [*ValueError].
func (v Values) BackoffBase() (int64, error) {
	value, ok := v[BackoffBaseSec]
	if !ok {
		return defaultBackoffBaseSec, nil
	}
	sec, err := strconv.ParseInt(strings.Trim(value, space), 10, 64)
	if err != nil || sec < 0 || sec > MaxBackoffBaseSec {
		return 0, &ValueError{BackoffBaseSec, value, "is not a whole number of seconds from 0 to ten years"}
	}
	return sec, nil
}

// Check returns a [*ValueError] if the value under key is invalid, and [ErrKey] if key
// is not one of [Keys]. An unset key is valid.
func (v Values) Check(key string) error {
	var err error
	_, isGate := gateOf(key)
	switch {
	case isGate:
		_, err = v.boolean(key, false)
	case key == WindowUntil:
		_, err = v.Window()
	case key == BackoffBaseSec:
		_, err = v.BackoffBase()
	default:
		err = fmt.Errorf("%w: %q", ErrKey, key)
	}
	return err
}

func (v Values) boolean(key string, unset bool) (bool, error) {
	value, ok := v[key]
	if !ok {
		return unset, nil
	}
	b, ok := parseBool(value)
	if !ok {
		return false, &ValueError{key, value, "is not a boolean"}
	}
	return b, nil
}

// parseBool accepts PostgreSQL's boolean input: true, false, yes, no and their prefixes,
// on, off, of, 1 and 0, in any case, with space around.
func parseBool(value string) (b, ok bool) {
	word := lowerASCII(strings.Trim(value, space))
	switch word {
	case "":
		return false, false
	case "1", "on":
		return true, true
	case "0", "off", "of":
		return false, true
	}
	if strings.HasPrefix("true", word) || strings.HasPrefix("yes", word) {
		return true, true
	}
	return false, strings.HasPrefix("false", word) || strings.HasPrefix("no", word)
}

// lowerASCII lowers only A to Z. Unicode's case folding would accept "yeſ", with a long
// s, as yes; PostgreSQL rejects it.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}
