package pgtest

import (
	"fmt"
	"regexp"
	"strconv"
)

// oldest is the first major version that can drop a database with force.
const oldest = 13

// version is a version of PostgreSQL, such as 15.14. 18beta2 is 18.0.
type version struct{ major, minor int }

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)(?:\.(\d+))?`)

// parseVersion parses the output of postgres --version.
func parseVersion(output string) (version, error) {
	parts := versionPattern.FindStringSubmatch(output)
	if parts == nil {
		return version{}, fmt.Errorf("not PostgreSQL, its version is %q", output)
	}
	major, _ := strconv.Atoi(parts[1])
	minor, _ := strconv.Atoi(parts[2])
	if major < oldest {
		return version{}, fmt.Errorf("PostgreSQL %d is older than %d", major, oldest)
	}
	return version{major: major, minor: minor}, nil
}

// newer reports whether v is newer than other.
func (v version) newer(other version) bool {
	if v.major != other.major {
		return v.major > other.major
	}
	return v.minor > other.minor
}
