package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// settingsTable looks at the table and at the values in it.
func (v *verifier) settingsTable(ctx context.Context, source gates.Table) error {
	name := source.Name
	if len(name) == 0 {
		name = pgx.Identifier{"queue_config"}
	}
	object := name.Sanitize()
	before := len(v.problems)
	t, err := v.table(ctx, "settings table", name, []need{
		{"key", texts, "text primary key", reads},
		{"value", words, "text", reads},
		{"updated_at", nil, "timestamptz not null default now()", optional},
		{"updated_by", nil, "text not null default current_user", optional},
	})
	if err != nil || t == nil || slices.ContainsFunc(v.problems[before:], keepsFromReading) {
		return err
	}
	v.lockable(t, object)
	v.identity(t, object, "change of a setting", SeverityWarning, false)
	if err := v.writes(ctx, t, object, settingWrites()); err != nil {
		return err
	}
	if t.Stored() && !t.HasKey("key") {
		v.add(Problem{
			Code: CodeKeyMissing, Object: object + `."key"`,
			Message: "Nothing makes the key unique, and a setting that stands there twice is an error.",
			Fix:     fmt.Sprintf(`create unique index%s on %s ("key")`, concurrently(t), object),
		})
	}
	values, err := source.Peek(ctx, v.tx, gates.Keys())
	var invalid *gates.ValueError
	if errors.As(err, &invalid) {
		v.invalid(invalid, object)
		return nil
	}
	if err != nil {
		return err
	}
	v.values(values, object)
	return nil
}

// settingWrites are what a change of a setting writes.
func settingWrites() []write {
	change := write{act: "change of a setting", severity: SeverityWarning, values: some("value", "updated_at")}
	change.values = append(change.values, value{"updated_by", actorName, ""})
	return []write{change}
}

// lockable looks whether the role may update some column, which is what locking
// a row takes.
func (v *verifier) lockable(t *catalog.Table, object string) {
	if !slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return c.Update }) {
		v.lacks(object, `update ("updated_at")`)
	}
}

// values looks whether each setting parses, whatever the others say.
func (v *verifier) values(values gates.Values, object string) {
	for _, key := range gates.Keys() {
		var invalid *gates.ValueError
		if errors.As(values.Check(key), &invalid) {
			v.invalid(invalid, object)
		}
	}
}

// invalid reports a setting. Without it the default holds, which is closed.
func (v *verifier) invalid(err *gates.ValueError, object string) {
	p := Problem{Code: CodeSettingInvalid, Object: err.Key, Message: "The setting does not parse: " + err.Error() + "."}
	if key, bad := pgtext.Label(err.Key); object != "" && bad == nil {
		p.Fix = fmt.Sprintf(`delete from %s where "key" = %s`, object, key)
	}
	v.add(p)
}
