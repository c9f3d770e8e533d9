package console_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// lookPages are all pages that anybody who may look can open.
var lookPages = []string{
	"/shop/overview", "/shop/jobs", "/shop/plan", "/shop/gates", "/shop/letters", "/shop/redrive", "/shop/purge?older=1d",
	"/shop/verify",
}

// A page that fails to render shows nothing when it is needed.
func TestEachPageAnswers(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(filled(t)))
	for _, page := range lookPages {
		got := get(t, h, page)
		require.Equal(t, http.StatusOK, got.StatusCode, "%s: %s", page, got.body)
		require.Contains(t, got.body, "</html>", page)
		require.NotContains(t, got.body, "no value", page)
	}
}
