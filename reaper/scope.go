package reaper

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// scope is which leases are a reaper's, and how far past their ends they are
// stale. It is the $1 of every statement with the condition of a stale lease: the
// grace in microseconds, or, with rules for single kinds, a document of all of it.
type scope struct {
	kinds, except []string
	grace         time.Duration
	byKind        map[string]time.Duration
}

func (c Config) scope() scope {
	return scope{kinds: c.Kinds, except: c.ExceptKinds, grace: c.Grace, byKind: c.KindGrace}
}

// plain reports whether all kinds are alike.
func (s scope) plain() bool { return len(s.kinds)+len(s.except)+len(s.byKind) == 0 }

// parameter is the statements' $1.
func (s scope) parameter() (any, error) {
	if s.plain() {
		return s.grace.Microseconds(), nil
	}
	least, most := s.bounds()
	byKind := map[string]int64{}
	for kind, grace := range s.byKind {
		byKind[kind] = grace.Microseconds()
	}
	document, err := json.Marshal(map[string]any{
		"kinds": s.kinds, "except_kinds": s.except, "kind_grace": byKind,
		"grace": s.grace.Microseconds(), "least_grace": least.Microseconds(), "most_grace": most.Microseconds(),
	})
	return string(document), err
}

// bounds are the shortest grace of a kind and the longest.
func (s scope) bounds() (least, most time.Duration) {
	least, most = s.grace, s.grace
	for _, grace := range s.byKind {
		least, most = min(least, grace), max(most, grace)
	}
	return least, most
}

// validate reports every fault. kindless says that the queue has no kinds.
func (s scope) validate(kindless bool) error {
	var faults []error
	if kindless && !s.plain() {
		faults = append(faults, fmt.Errorf("%w: the queue has no column of kinds", ErrKind))
	}
	if s.kinds != nil && len(s.kinds) == 0 {
		faults = append(faults, fmt.Errorf("%w: Kinds is empty and not nil", ErrKind))
	}
	for _, kind := range append(append([]string{}, s.kinds...), s.except...) {
		faults = append(faults, checkKind(kind))
	}
	for _, kind := range slices.Sorted(maps.Keys(s.byKind)) {
		faults = append(faults, checkKind(kind), checkGrace(fmt.Sprintf("KindGrace of %q", kind), s.byKind[kind]))
	}
	return errors.Join(faults...)
}

// checkGrace reports a grace that is negative, or that is one and would be none.
func checkGrace(name string, grace time.Duration) error {
	switch {
	case grace < 0:
		return fmt.Errorf("%w: %s %v", ErrNegative, name, grace)
	case grace > 0 && grace < time.Microsecond:
		return fmt.Errorf("%w: %s %v", ErrGrace, name, grace)
	}
	return nil
}

// checkKind reports a kind that no job can have.
func checkKind(kind string) error {
	if strings.ContainsRune(kind, 0) || !utf8.ValidString(kind) {
		return fmt.Errorf("%w: %q is not text", ErrKind, kind)
	}
	return nil
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
	condStaleByKind = ` and q.{lease_until} < now() - ` + kindGrace
)

// pairs adds the scope's placeholders, and what stands for them, to those of the
// queue.
func (s scope) pairs(names []string) []string {
	in := strings.NewReplacer(names...).Replace
	grace, most, only, late, due := plainGrace, plainGrace, "", "", sqlNextExpiry
	if !s.plain() {
		grace, most = leastGrace, mostGrace
	}
	if len(s.kinds) > 0 {
		only += onlyKinds
	}
	if len(s.except) > 0 {
		only += exceptKinds
	}
	if len(s.byKind) > 0 {
		late, due = condStaleByKind, sqlNextExpiryByKind
	}
	names = append(names, "{grace}", grace, "{most_grace}", most, "{only}", in(only), "{ripe}", in(late),
		"{kind_grace}", in(kindGrace))
	return append(names, "{due}", strings.NewReplacer(names...).Replace(due))
}
