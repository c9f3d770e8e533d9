package soak_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/soak"
)

// Operators set what the page says. The figures would be of something else.
func TestThePageSaysWhatWasSet(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile("../../../docs/operations.md")

	require.NoError(t, err)
	require.Contains(t, string(page), soak.Settings)
}
