package console_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// TestMain ends the server that the tests have started.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := pgtest.Shutdown(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
