package pgtext

import (
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Names collects the quoted SQL for the placeholders of a statement, and the faults of
// the names in it.
type Names struct {
	Pairs  []string // placeholder and SQL in turn, for a [strings.Replacer]
	Faults []error
}

// Name adds a name of one or two parts, and returns it quoted.
func (n *Names) Name(placeholder string, id pgx.Identifier) string {
	sql, err := Name(id)
	return n.checked(placeholder, sql, err)
}

// Column adds a name of one part.
func (n *Names) Column(placeholder, name string) string {
	return n.Name(placeholder, pgx.Identifier{name})
}

// Label adds a state's name.
func (n *Names) Label(placeholder, label string) string {
	sql, err := Label(label)
	return n.checked(placeholder, sql, err)
}

// Add adds SQL.
func (n *Names) Add(placeholder, sql string) string {
	n.Pairs = append(n.Pairs, "{"+placeholder+"}", sql)
	return sql
}

func (n *Names) checked(placeholder, sql string, err error) string {
	if err != nil {
		n.Faults = append(n.Faults, fmt.Errorf("%s: %w", placeholder, err))
	}
	return n.Add(placeholder, sql)
}

// Twice returns each name that occurs more than once. It ignores empty names.
func Twice(names ...string) []string {
	var twice []string
	seen := map[string]bool{"": false}
	for _, name := range names {
		if seen[name] {
			twice = append(twice, name)
		}
		seen[name] = name != ""
	}
	return twice
}
