package pgtest

import (
	"os"
	"path/filepath"
	"strings"
)

// Environment is the input of the search for a server.
type Environment struct {
	// DatabaseURL is the connection string of a running server. Its role must be
	// allowed to create databases. From PGTEST_DATABASE_URL.
	DatabaseURL string
	// Bin is the folder of the initdb and postgres to use. When it is set, no
	// other folder is searched. From PGTEST_BIN.
	Bin string
	// Path lists the folders that are searched first, in this order: for initdb and
	// postgres, then for a pg_config that prints their folder. From PATH.
	Path []string
	// Installs has patterns, as for filepath.Glob, of the folders that packages of
	// PostgreSQL use. The newest version in them is used.
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

// cacheFolder returns the user's cache. For root it is a folder that the account of
// PostgreSQL can read.
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

// serverEnvironment returns environ without the variables that change PostgreSQL's
// behavior, such as PGPORT, and with the locale C, since PostgreSQL does not start without
// a locale on macOS.
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
