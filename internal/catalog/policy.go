package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// Policy is a row-level security policy.
type Policy struct {
	Name       string // quoted
	Permissive bool
	Command    string // "*" for all, else "r", "a", "w" or "d"
	Using      *string
	Check      *string
}

// commands are the letters that the catalogs have for what a role does. To lock a row
// takes a policy for updates.
var commands = map[string]string{"select": "r", "insert": "a", "update": "w", "lock": "w"}

// passes reports whether a policy lets the role do something with every row. A
// permissive one without an expression lets it do nothing.
func (p Policy) passes(privilege, role string) bool {
	if p.Command != "*" && p.Command != commands[privilege] {
		return !p.Permissive
	}
	writes := privilege == "insert" || privilege == "update"
	return (privilege == "insert" || p.isTrue(p.Using, role)) && (!writes || p.isTrue(cmp.Or(p.Check, p.Using), role))
}

// isTrue reports whether an expression is true, or ends as one does that Exempt
// makes. That end is outside of all parentheses but the last, so no other
// condition can make it false.
func (p Policy) isTrue(expression *string, role string) bool {
	if expression == nil {
		return !p.Permissive
	}
	return *expression == "true" || strings.HasSuffix(*expression, " OR (CURRENT_USER = "+role+"::name))")
}

// Exempt is the end of an ALTER POLICY that makes the policy true for one role, and
// leaves it as it is for others. role is a quoted literal.
func (p Policy) Exempt(role string) string {
	end := ""
	if p.Using != nil {
		end += " using ((" + *p.Using + ") or current_user = " + role + ")"
	}
	if p.Check != nil {
		end += " with check ((" + *p.Check + ") or current_user = " + role + ")"
	}
	return end
}

// HidesRows reports whether row-level security may keep the role from doing one of
// these things with some row, and the first restrictive policy that may, if there is
// one. role is a quoted literal.
func (t *Table) HidesRows(privileges []string, role string) (hides bool, by *Policy) {
	if !t.RowSecurity {
		return false, nil
	}
	passed := map[string]bool{}
	for i, p := range t.Policies {
		for _, privilege := range privileges {
			passes := p.passes(privilege, role)
			if !p.Permissive && !passes {
				return true, &t.Policies[i]
			}
			passed[privilege] = passed[privilege] || p.Permissive && passes
		}
	}
	return slices.ContainsFunc(privileges, func(privilege string) bool { return !passed[privilege] }), nil
}
