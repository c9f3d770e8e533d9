package pgtest

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
)

// longestSocket is what fits into a socket's address on every Unix, which is 104
// bytes with the closing zero on macOS.
const longestSocket = 103

// folders returns paths of which one is to become a server's folder, the best
// first. /tmp is there for a TMPDIR that is too long or that the account which
// PostgreSQL runs under may not write to.
func folders() []string {
	name := "pgtest-" + token()
	var fitting []string
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		folder := filepath.Join(parent, name)
		if len(folder)+len("/.s.PGSQL.")+len(port) <= longestSocket {
			fitting = append(fitting, folder)
		}
	}
	return fitting
}

// token returns random lower-case letters and digits, fit for a name.
func token() string { return strings.ToLower(rand.Text()[:12]) }
