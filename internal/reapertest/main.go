package reapertest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Main runs a package's tests, stops its server and looks for leaked goroutines. In a
// service a goroutine that outlives a Run is a leak.
func Main(m *testing.M) {
	code := m.Run()
	if err := pgtest.Shutdown(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
