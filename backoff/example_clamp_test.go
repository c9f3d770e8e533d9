package backoff_test

import (
	"fmt"

	"github.com/lease-governance/leasereaper/backoff"
)

// A policy of one's own may return anything; the reaper holds it to what a
// timestamp can bear.
func ExampleClamp() {
	fmt.Println(backoff.Clamp(-5), backoff.Clamp(60), backoff.Clamp(1<<62) == backoff.MaxSec)
	// Output:
	// 0 60 true
}
