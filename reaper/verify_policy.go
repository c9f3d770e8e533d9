package reaper

import (
	"fmt"
	"slices"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// policies looks whether row-level security lets the role do with every row what
// it does with the table. A restrictive policy is reported alone: the others count
// once it lets the rows through.
func (v *verifier) policies(t *catalog.Table, object string, needs []need) {
	var privileges []string
	for _, privilege := range []string{"select", "insert", "update"} {
		if slices.ContainsFunc(needs, func(n need) bool { return slices.Contains(n.privileges, privilege) }) {
			privileges = append(privileges, privilege)
		}
	}
	if policy := t.Restriction(privileges, v.roleLiteral); policy != nil {
		v.add(Problem{
			Code: CodeRowSecurity, Object: object,
			Message: fmt.Sprintf("Row-level security may hide rows from the role: "+
				"the restrictive policy %s applies to it. No further policy can undo that. "+
				"The fix exempts the role from this one.", policy.Name),
			Fix: fmt.Sprintf("alter policy %s on %s%s", policy.Name, object, policy.Exempt(v.roleLiteral)),
		})
		return
	}
	if t.HidesRows(privileges, v.roleLiteral) {
		v.add(Problem{
			Code: CodeRowSecurity, Object: object,
			Message: "Row-level security may hide rows from the role: no policy shows and takes all of them.",
			Fix: fmt.Sprintf("create policy leasereaper on %s to %s using (true) with check (true)",
				object, v.role),
		})
	}
}
