package pgtext

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// maxNameBytes is the length of PostgreSQL's longest name (NAMEDATALEN - 1). PostgreSQL
// truncates longer names without an error.
const maxNameBytes = 63

// Name quotes a name of one or two parts, as in "schema"."table". A name that no
// table can have is an error that wraps ErrName.
func Name(id pgx.Identifier) (string, error) {
	if len(id) < 1 || len(id) > 2 {
		return "", fmt.Errorf("%w %q: want a table, or a schema and a table", ErrName, []string(id))
	}
	for _, part := range id {
		if fault := partFault(part); fault != "" {
			return "", fmt.Errorf("%w %q: %s", ErrName, part, fault)
		}
	}
	return id.Sanitize(), nil
}

// Parts returns the schema and the table of a name, as parameters of a statement. The
// schema is nil for a table on the search path.
func Parts(id pgx.Identifier) []any {
	if len(id) == 2 {
		return []any{id[0], id[1]}
	}
	return []any{nil, id[0]}
}

// ErrName is wrapped by the errors of Name and Label.
var ErrName = errors.New("invalid name")

func partFault(part string) string {
	switch {
	case part == "":
		return "it is empty"
	case strings.ContainsRune(part, 0):
		return "it contains a NUL"
	case !utf8.ValidString(part):
		return "it is not UTF-8"
	case len(part) > maxNameBytes:
		return fmt.Sprintf("it is longer than %d bytes", maxNameBytes)
	}
	return ""
}

// Label quotes a state's name as a literal. An enum must be able to have the label: it is
// not empty and has at most 63 bytes.
func Label(label string) (string, error) {
	if fault := partFault(label); fault != "" {
		return "", fmt.Errorf("%w %q: %s", ErrName, label, fault)
	}
	return Literal(label), nil
}

// Literal quotes a text that has no NUL. Backslashes are safe under either setting of
// standard_conforming_strings.
func Literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
