package citus_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"
)

func TestMain(m *testing.M) { reapertest.Main(m) }
