package pgtest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// nowhere is the address of a repository that does not exist.
const nowhere = "http://127.0.0.1:1"

// A package of version 9 sorts after one of version 16 by name.
func TestFindTakesTheNewestInstall(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		installed map[string]string
		want      string
	}{
		"by number, not by name":         {map[string]string{"14": "14.9", "9.6": "9.6.24", "13": "13.21", "16": "16.2"}, "16"},
		"by the minor version too":       {map[string]string{"a": "17.10", "b": "17.9"}, "a"},
		"a beta counts as its version":   {map[string]string{"17": "17.5", "18": "18beta2"}, "18"},
		"one that is too old is no help": {map[string]string{"12": "12.22", "13": "13.0"}, "13"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			root := openFolder(t)
			for folder, version := range test.installed {
				install(t, filepath.Join(root, folder, "bin"), version)
			}
			environment := pgtest.Environment{Installs: []string{filepath.Join(root, "*", "bin")}}
			source, err := environment.Find(t.Context())
			require.NoError(t, err)
			require.Equal(t, filepath.Join(root, test.want, "bin"), source.Bin)
		})
	}
}

// The first version in PATH must be tested.
func TestFindPrefersTheNearerSource(t *testing.T) {
	t.Parallel()

	root := openFolder(t)
	chosen := install(t, filepath.Join(root, "chosen"), "13.1")
	onPath := install(t, filepath.Join(root, "path"), "14.1")
	named := install(t, filepath.Join(root, "named"), "15.1")
	usual := install(t, filepath.Join(root, "usual"), "18.1")
	config := filepath.Join(root, "config")
	program(t, filepath.Join(config, "pg_config"), "echo "+named)

	tests := map[string]struct {
		environment pgtest.Environment
		want        string
	}{
		"PGTEST_BIN before PATH": {pgtest.Environment{Bin: chosen, Path: []string{onPath}}, chosen},
		"PATH before pg_config":  {pgtest.Environment{Path: []string{config, onPath}, Installs: []string{usual}}, onPath},
		"pg_config before the usual folders": {
			pgtest.Environment{Path: []string{root, config}, Installs: []string{usual}}, named,
		},
		"the usual folders last": {pgtest.Environment{Path: []string{"", root}, Installs: []string{usual}}, usual},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			source, err := test.environment.Find(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.want, source.Bin)
		})
	}
}

// The error must tell a newcomer what to install or to set.
func TestFindNamesAllWaysWhenThereIsNone(t *testing.T) {
	t.Parallel()

	root := openFolder(t)
	usual := install(t, filepath.Join(root, "usual"), "18.1")
	old := install(t, filepath.Join(root, "old"), "12.1")

	tests := map[string]struct {
		environment pgtest.Environment
		reasons     []string
	}{
		"nothing is there": {
			pgtest.Environment{Cache: root, Repository: nowhere},
			[]string{"not set", "none in PATH", "npm is not in PATH", nowhere},
		},
		"what is there is too old": {
			pgtest.Environment{Path: []string{old}, Installs: []string{old}, Cache: root, Repository: nowhere},
			[]string{"not set", "older than 13", "npm is not in PATH", nowhere},
		},
		"there is no place for a download": {
			pgtest.Environment{},
			[]string{"not set", "none in PATH", "no cache folder", "no cache folder"},
		},
		"PGTEST_BIN does not work": {
			pgtest.Environment{Bin: root, Installs: []string{usual}, Cache: root, Repository: nowhere},
			[]string{"not set", root, "PGTEST_BIN is set", "PGTEST_BIN is set"},
		},
		"PGTEST_DATABASE_URL does not work": {
			pgtest.Environment{DatabaseURL: "postgres://127.0.0.1:1/db", Installs: []string{usual}},
			[]string{"127.0.0.1", "PGTEST_DATABASE_URL is set", "PGTEST_DATABASE_URL is set", "PGTEST_DATABASE_URL is set"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := test.environment.Find(t.Context())
			var none *pgtest.SourceError
			require.ErrorAs(t, err, &none)
			require.ErrorContains(t, none.URL, test.reasons[0])
			require.ErrorContains(t, none.Installed, test.reasons[1])
			require.ErrorContains(t, none.Npm, test.reasons[2])
			require.ErrorContains(t, none.Download, test.reasons[3])
			for _, way := range []string{"PGTEST_DATABASE_URL", "PGTEST_BIN", "npm", "download"} {
				require.ErrorContains(t, err, way)
			}
		})
	}
}

// On a machine without PostgreSQL the error must have a command to type.
func TestFindEndsWithWhatToType(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ installer, want string }{
		"Debian and Ubuntu":             {"apt-get", "apt-get install postgresql\n"},
		"Fedora":                        {"dnf", "dnf install postgresql-server\n"},
		"openSUSE":                      {"zypper", "zypper install postgresql-server\n"},
		"Arch":                          {"pacman", "pacman -S postgresql\n"},
		"Alpine":                        {"apk", "apk add postgresql\n"},
		"macOS":                         {"brew", "    brew install postgresql@17\n"},
		"one that has no known program": {"", "https://www.postgresql.org/download/\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			folder := openFolder(t)
			if test.installer != "" {
				program(t, filepath.Join(folder, test.installer), "")
			}
			_, err := pgtest.Environment{Path: []string{folder}}.Find(t.Context())
			require.ErrorContains(t, err, test.want+"or set PGTEST_DATABASE_URL")
		})
	}
}

// If the server of a variable does not work, the advice must not be to install PostgreSQL.
func TestFindEndsWithTheVariableThatIsWrong(t *testing.T) {
	t.Parallel()

	_, err := pgtest.Environment{Bin: openFolder(t)}.Find(t.Context())
	require.ErrorContains(t, err, "or unset PGTEST_BIN")
	_, err = pgtest.Environment{DatabaseURL: "postgres://127.0.0.1:1/db"}.Find(t.Context())
	require.ErrorContains(t, err, "or unset PGTEST_DATABASE_URL")
}

// The logs of a CI job must not contain the password.
func TestFindWithholdsThePassword(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ url string }{
		"of a server that is away":      {"postgres://someone:s3cret@127.0.0.1:1/db?sslmode=disable"},
		"of a broken port":              {"postgres://someone:s3cret@127.0.0.1:port/db"},
		"with an at sign and no escape": {"postgres://someone:ab@s3cret@127.0.0.1:port/db"},
		"with a broken escape":          {"postgres://someone:s3cret%zz@127.0.0.1/db"},
		"in keywords":                   {"host=127.0.0.1 port=port password=s3cret"},
		"in keywords without an end":    {"host=127.0.0.1 password='ab s3cret"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := pgtest.Environment{DatabaseURL: test.url}.Find(t.Context())
			var none *pgtest.SourceError
			require.ErrorAs(t, err, &none)
			require.NotContains(t, err.Error(), "s3cret")
			for reason := none.URL; reason != nil; reason = errors.Unwrap(reason) {
				require.NotContains(t, reason.Error(), "s3cret")
			}
		})
	}
}

// install makes a folder with programs that print a version.
func install(t *testing.T, folder, version string) string {
	t.Helper()
	for _, name := range []string{"initdb", "postgres"} {
		program(t, filepath.Join(folder, name), fmt.Sprintf("echo '%s (PostgreSQL) %s'", name, version))
	}
	return folder
}

func program(t *testing.T, path, script string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}
