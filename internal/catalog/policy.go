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

// commands maps a privilege to the letter of its command in the catalogs. A row lock
// needs a policy for updates.
var commands = map[string]string{"select": "r", "insert": "a", "update": "w", "lock": "w"}

// passes reports whether a policy allows the role to use a privilege on every row. A
// permissive policy without an expression allows nothing.
func (p Policy) passes(privilege, role string) bool {
	if p.Command != "*" && p.Command != commands[privilege] {
		return !p.Permissive
	}
	writes := privilege == "insert" || privilege == "update"
	return (privilege == "insert" || p.isTrue(p.Using, role)) && (!writes || p.isTrue(cmp.Or(p.Check, p.Using), role))
}

// isTrue reports whether an expression is always true for the role: it is "true", or it
// ends with the condition that Exempt appends. Only the outermost parentheses enclose that
// condition, so no other condition can make it false.
func (p Policy) isTrue(expression *string, role string) bool {
	if expression == nil {
		return !p.Permissive
	}
	return *expression == "true" || strings.HasSuffix(*expression, " OR (CURRENT_USER = "+role+"::name))")
}

// Exempt returns the end of an ALTER POLICY that makes the policy true for one role and
// does not change it for others. role is a quoted literal.
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

// HidesRows reports whether row-level security may deny the role one of these privileges
// on some row. by is the first restrictive policy that may, or nil. role is a quoted
// literal.
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
