package backoff

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

const (
	// maxExponent is where the doubling stops: base * 2^10.
	maxExponent = 10

	// MaxSec is the longest delay in seconds: a base of ten years of 365 days, doubled
	// ten times. It stays within the range of timestamptz.
	MaxSec = 10 * 365 * 24 * 60 * 60 << maxExponent
)

// Policy turns attempts into a delay in whole seconds. attempts includes the attempt
// that has just failed, so it is 1 for a job whose first lease has expired. baseSec is
// the setting queue.retry.backoff_base_sec, in seconds; a policy may ignore it. The
// reaper limits the result to 0..[MaxSec].
type Policy interface {
	DelaySec(attempts int, baseSec int64) int64
}

// PolicyFunc makes a [Policy] of a function.
type PolicyFunc func(attempts int, baseSec int64) int64

// Validate reports a nil function.
func (f PolicyFunc) Validate() error {
	if f == nil {
		return errors.New("backoff: policy function is nil")
	}
	return nil
}

// DelaySec calls f.
func (f PolicyFunc) DelaySec(attempts int, baseSec int64) int64 { return f(attempts, baseSec) }

var _ Policy = Exponential{}

// Exponential is baseSec * 2^(attempts-1), with the exponent limited to 0..10. Its zero
// value is the default policy.
type Exponential struct {
	// Jitter is a fraction from 0 to 1. The result is random, from delay*(1-Jitter) to
	// delay, in whole seconds. Jitter only shortens a delay, so jobs with the longest
	// delay are spread too. If it is too low, jobs that failed together are retried
	// together; if it is too high, some are retried almost at once. Default 0: no jitter.
	Jitter float64
}

// DelaySec returns the delay in seconds, from 0 to [MaxSec]. A negative base
// counts as 0, attempts below 1 as 1.
func (e Exponential) DelaySec(attempts int, baseSec int64) int64 {
	delay := saturatingShift(baseSec, min(max(attempts, 1)-1, maxExponent))
	return delay - jitterOf(delay, e.Jitter)
}

// Validate reports a Jitter outside 0..1.
func (e Exponential) Validate() error {
	if e.Jitter >= 0 && e.Jitter <= 1 {
		return nil
	}
	return fmt.Errorf("backoff: jitter %v is not a fraction from 0 to 1", e.Jitter)
}

// saturatingShift returns sec * 2^exponent, limited to 0..MaxSec.
func saturatingShift(sec int64, exponent int) int64 {
	if sec > MaxSec>>exponent {
		return MaxSec
	}
	return max(sec, 0) << exponent
}

// jitterOf returns a random whole number from 0 to delay*jitter.
func jitterOf(delay int64, jitter float64) int64 {
	if !(jitter > 0) { // also when it is not a number
		return 0
	}
	span := int64(float64(delay) * min(jitter, 1))
	return rand.Int64N(span + 1)
}
