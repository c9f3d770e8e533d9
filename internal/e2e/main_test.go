package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// A goroutine that outlives a Run, or a connection that outlives its pool, is
// lost to the service for as long as that lives.
func TestMain(m *testing.M) {
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
