package pgtest

import (
	"os"
	"path/filepath"
	"strings"
)

// Environment is all that the search for a server looks at.
type Environment struct {
	// DatabaseURL is the connection string of a server that runs already. Its
	// role must be allowed to create databases. From PGTEST_DATABASE_URL.
	DatabaseURL string
	// Bin is the folder of the initdb and postgres to use. When it is set, no
	// other is looked for. From PGTEST_BIN.
	Bin string
	// Path lists folders that are looked in first, in this order, for initdb and
	// postgres and then for a pg_config that knows where they are. From PATH.
	Path []string
	// Installs are patterns, as of filepath.Glob, of the folders that packages
	// of PostgreSQL use. The newest version among them is taken.
	Installs []string
	// Cache is the folder that keeps downloads.
	Cache string
	// Repository is the address of the Maven repository to download from. Empty
	// means Maven Central.
	Repository string
}

// CurrentEnvironment returns the environment of this process.
func CurrentEnvironment() Environment {
	return Environment{
		DatabaseURL: os.Getenv("PGTEST_DATABASE_URL"),
		Bin:         os.Getenv("PGTEST_BIN"),
		Path:        filepath.SplitList(os.Getenv("PATH")),
		Installs: []string{
			"/usr/lib/postgresql/*/bin",
			"/usr/pgsql-*/bin",
			"/usr/lib/postgresql*/bin",
			"/usr/libexec/postgresql*",
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
			"/Applications/Postgres.app/Contents/Versions/*/bin",
		},
		Cache: cacheFolder(),
	}
}

// cacheFolder returns the user's cache; root's is one that the account which
// PostgreSQL runs under can read.
func cacheFolder() string {
	const name = "leasereaper-pgtest"
	if os.Geteuid() == 0 {
		return filepath.Join("/var/cache", name)
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, name)
}

// serverEnvironment returns environ without the variables that would change
// what PostgreSQL does, such as PGPORT, and with the plainest locale, for macOS
// refuses to start it under none.
func serverEnvironment(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		if strings.HasPrefix(entry, "PG") || strings.HasPrefix(entry, "LC_") {
			continue
		}
		kept = append(kept, entry)
	}
	return append(kept, "LC_ALL=C")
}
