package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// A page that breaks its own policy loads less than it should; one that asks another
// host tells it who looks at the queue.
func TestPagesKeepTheirPolicyUnderAPrefix(t *testing.T) {
	t.Parallel()
	cfg := crowded(t)
	h := handler(t, cfg)
	pages := append(slices.Clone(lookPages), "/shop/history", "/shop/letter?id="+aLetter(t, cfg), "/billing/overview",
		"/shop/purge?unredriven=yes&older=1h")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			t.Run(fmt.Sprintf("%s at %d pixels", scheme, width), func(t *testing.T) {
				t.Parallel()
				b := open(t, h, theme(scheme), chromedp.EmulateViewport(width, 900))
				for _, page := range pages {
					b.visit(page)
					require.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), width, "%s is too wide", page)
					require.NotEqual(t, "Times New Roman", eval[string](b, "getComputedStyle(document.body).fontFamily"), "the stylesheet")
					name := strings.NewReplacer("/", "-", "?", "-", "&", "-", "=", "-").Replace(page[1:min(len(page), 30)])
					b.picture(fmt.Sprintf("%s-%s-%d", name, scheme, width))
				}
				b.mu.Lock()
				defer b.mu.Unlock()
				require.Empty(t, b.complaints)
				require.Len(t, b.hosts, 1)
			})
		}
	}
}
