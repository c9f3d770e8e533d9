package main

import "time"

// age is a flag for a time span, which may be in days.
type age time.Duration

// String is the span as Go writes it.
func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Set parses a span.
func (a *age) Set(text string) error {
	parsed, err := parseAge(text)
	*a = age(parsed)
	return err
}

// Type names the flag's values in help.
func (a *age) Type() string { return "duration" }

func duration(a age) time.Duration { return time.Duration(a) }
