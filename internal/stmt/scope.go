package stmt

import (
	"encoding/json"
	"strings"
	"time"
)

// Scope is which leases are a reaper's, and how far past their ends they are
// stale. It is the $1 of every statement with the condition of a stale lease: the
// grace in microseconds, or, with rules for single kinds, a document of all of it.
type Scope struct {
	Kinds, Except []string
	Grace         time.Duration
	ByKind        map[string]time.Duration
}

// Uniform reports whether all kinds are alike.
func (s Scope) Uniform() bool { return len(s.Kinds)+len(s.Except)+len(s.ByKind) == 0 }

// Parameter is the statements' $1.
func (s Scope) Parameter() (any, error) {
	if s.Uniform() {
		return s.Grace.Microseconds(), nil
	}
	least, most := s.bounds()
	byKind := map[string]int64{}
	for kind, grace := range s.ByKind {
		byKind[kind] = grace.Microseconds()
	}
	document, err := json.Marshal(map[string]any{
		"kinds": s.Kinds, "except_kinds": s.Except, "kind_grace": byKind,
		"grace": s.Grace.Microseconds(), "least_grace": least.Microseconds(), "most_grace": most.Microseconds(),
	})
	return string(document), err
}

// bounds are the shortest grace of a kind and the longest.
func (s Scope) bounds() (least, most time.Duration) {
	least, most = s.Grace, s.Grace
	for _, grace := range s.ByKind {
		least, most = min(least, grace), max(most, grace)
	}
	return least, most
}

// Pieces of SQL for the placeholders of the scope: grace and most_grace are
// intervals, only and ripe are further conditions or nothing, and due is a
// subquery. {text} is a row's kind.
const (
	ofMicros   = ` * interval '1 microsecond'`
	plainGrace = `$1::bigint` + ofMicros
	leastGrace = `($1::jsonb ->> 'least_grace')::bigint` + ofMicros
	mostGrace  = `($1::jsonb ->> 'most_grace')::bigint` + ofMicros
	kindGrace  = `coalesce($1::jsonb -> 'kind_grace' ->> {text}, $1::jsonb ->> 'grace')::bigint` + ofMicros

	onlyKinds       = ` and $1::jsonb -> 'kinds' ? {text}`
	exceptKinds     = ` and not $1::jsonb -> 'except_kinds' ? {text}`
	condStaleByKind = ` and {key} < {key(}now() - ` + kindGrace + `{)key}`
)

// pairs adds the scope's placeholders, and what stands for them, to those of the
// queue.
func (s Scope) pairs(names []string) []string {
	in := strings.NewReplacer(names...).Replace
	grace, most, only, late, due := plainGrace, plainGrace, "{only_columns}", "", sqlNextExpiry
	if !s.Uniform() {
		grace, most = leastGrace, mostGrace
	}
	if len(s.Kinds) > 0 {
		only += onlyKinds
	}
	if len(s.Except) > 0 {
		only += exceptKinds
	}
	if len(s.ByKind) > 0 {
		late, due = condStaleByKind, sqlNextExpiryByKind
	}
	names = append(names, "{grace}", grace, "{most_grace}", most, "{only}", in(only), "{ripe}", in(late),
		"{kind_grace}", in(kindGrace))
	return append(names, "{due}", strings.NewReplacer(names...).Replace(due))
}
