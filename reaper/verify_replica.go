package reaper

import (
	"fmt"
	"strings"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// identity looks whether PostgreSQL takes updates of the table, and deletes where
// the library makes some: of a published table it must know how to name a row.
func (v *verifier) identity(t *catalog.Table, object, act, severity string, deletes bool) {
	var tables, fixes []string
	for _, u := range t.Unidentified {
		if !u.Updates && (!deletes || !u.Deletes) {
			continue
		}
		identity := "full"
		if u.Keyed {
			identity = "default" // the primary key
		}
		tables = append(tables, u.Name)
		fixes = append(fixes, fmt.Sprintf("alter table %s replica identity %s", u.Name, identity))
	}
	if len(tables) == 0 {
		return
	}
	v.add(Problem{
		Code: CodeReplicaIdentity, Severity: severity, Object: object,
		Message: fmt.Sprintf("A publication publishes %s, without a replica identity: every %s fails.",
			strings.Join(tables, ", "), act),
		Fix: strings.Join(fixes, ";\n"),
	})
}
