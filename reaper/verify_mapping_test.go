package reaper_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"
)

func TestVerifyProbe(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.open(t)
			t.Log(reapertest.Verify(t, pool, library.config()))
			library.fill(t, pool)
			r, err := reapertest.New(t, pool, library.config()).Rehearse(t.Context())
			t.Log(r, err)
		})
	}
}
