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

// commands are the letters that the catalogs have for what a role does.
var commands = map[string]string{"select": "r", "insert": "a", "update": "w"}

// conditions are the expressions that a row must pass; nil where there is none.
func (p Policy) conditions(privilege string) []*string {
	if p.Command != "*" && p.Command != commands[privilege] {
		return nil
	}
	switch written := cmp.Or(p.Check, p.Using); privilege {
	case "insert":
		return []*string{written}
	case "update":
		return []*string{p.Using, written}
	}
	return []*string{p.Using}
}

// shows reports whether a permissive policy lets the role do something with every
// row. One without an expression lets it do nothing.
func (p Policy) shows(privilege, role string) bool {
	conditions := p.conditions(privilege)
	return p.Permissive && len(conditions) > 0 && !slices.ContainsFunc(conditions, func(condition *string) bool {
		return condition == nil || !isTrue(*condition, role)
	})
}

// restricts reports whether a restrictive policy may keep the role from doing
// something with some row.
func (p Policy) restricts(privilege, role string) bool {
	return !p.Permissive && slices.ContainsFunc(p.conditions(privilege), func(condition *string) bool {
		return condition != nil && !isTrue(*condition, role)
	})
}

// isTrue reports whether an expression is true, or ends as one does that Exempt
// makes. That end is outside of all parentheses but the last, so no other
// condition can make it false.
func isTrue(expression, role string) bool {
	return expression == "true" || strings.HasSuffix(expression, " OR "+exempts(role)+")")
}

// exempts is a condition as the catalogs print it.
func exempts(role string) string { return "(CURRENT_USER = " + role + "::name)" }

// Exempt is the end of an ALTER POLICY that makes the policy true for one role, and
// leaves it as it is for others. role is a quoted literal.
func (p Policy) Exempt(role string) string {
	var b strings.Builder
	if p.Using != nil {
		b.WriteString(" using ((" + *p.Using + ") or current_user = " + role + ")")
	}
	if p.Check != nil {
		b.WriteString(" with check ((" + *p.Check + ") or current_user = " + role + ")")
	}
	return b.String()
}

// Restriction returns the first restrictive policy that may keep the role from
// doing one of these things, or nil. role is a quoted literal.
func (t *Table) Restriction(privileges []string, role string) *Policy {
	if !t.RowSecurity {
		return nil
	}
	i := slices.IndexFunc(t.Policies, func(p Policy) bool {
		return slices.ContainsFunc(privileges, func(privilege string) bool { return p.restricts(privilege, role) })
	})
	if i < 0 {
		return nil
	}
	return &t.Policies[i]
}

// HidesRows reports whether no permissive policy lets the role do one of these
// things with all rows. role is a quoted literal.
func (t *Table) HidesRows(privileges []string, role string) bool {
	return t.RowSecurity && slices.ContainsFunc(privileges, func(privilege string) bool {
		return !slices.ContainsFunc(t.Policies, func(p Policy) bool { return p.shows(privilege, role) })
	})
}
