package pgtest

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
)

// longestSocket is the length of the longest path of a socket on every Unix. On macOS it
// is 104 bytes with the final zero.
const longestSocket = 103

// folders returns candidates for a server's folder, the preferred first. /tmp is for a
// TMPDIR that is too long, or that the account of PostgreSQL cannot write to.
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

// token returns random lower-case letters and digits for a name.
func token() string { return strings.ToLower(rand.Text()[:12]) }
