package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// settings checks the settings, in their table or in another source. A source that
// locks what it reads cannot be tried in a read-only transaction.
func (v *verifier) settings(ctx context.Context) error {
	object := ""
	if v.target.Settings != nil {
		t, err := v.settingsTable(ctx)
		if err != nil || t == nil || v.blocksQueries {
			return err
		}
		object = t.SQL
	}
	var values gates.Values
	err := v.try(ctx, func(tx pgx.Tx) (err error) {
		values, err = v.target.Read(ctx, tx)
		return err
	})
	var invalid *gates.ValueError
	switch {
	case err == nil:
		v.values(values, object)
	case object != "" && errors.As(err, &invalid):
		v.invalid(invalid, object)
	case object != "":
		return err
	case pgtx.Code(err) != pgtx.CodeReadOnly:
		v.error("setting_invalid", v.target.Gates, "", "The source of the settings returned an error: %s.", err)
	}
	return nil
}

// settingsTable checks the table of the settings.
func (v *verifier) settingsTable(ctx context.Context) (*catalog.Table, error) {
	t, err := v.table(ctx, "settings table", v.target.Settings, []columnSpec{
		{"key", unpadded, "text primary key", locks},
		{"value", boolTypes, "text", locks},
		{"updated_at", nil, "timestamptz not null default now()", noPrivileges},
		{"updated_by", nil, "text not null default current_user", noPrivileges},
	})
	if err != nil || t == nil || v.blocksQueries {
		return t, err
	}
	mayLock := func(c catalog.Column) bool { return slices.Contains(c.Privileges, "update") }
	if !slices.ContainsFunc(t.Columns, mayLock) { // any column's privilege will do
		v.lacks(t, `update ("updated_at")`)
	}
	v.identity(t, "change of a setting", severityWarning, false)
	if t.Stored() && !t.HasKey("key") {
		v.error("key_missing", at(t, "key"), uniqueIndex(t, "key"),
			"Nothing makes the key unique, and a setting that is in the table twice is an error.")
	}
	longest := slices.MaxFunc(gates.Keys(), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	if err := v.fence(ctx, t); err != nil {
		return t, err
	}
	if err := v.writes(ctx, t, write{"change of a setting", severityWarning, map[string]any{
		"key": longest, "value": varies, "updated_at": varies, "updated_by": actorName,
	}}); err != nil {
		return t, err
	}
	return t, v.statements(ctx, t, Statement{Act: "read of the gates", SQL: "select from " + t.SQL + " for share"})
}

// values checks whether each setting parses, whatever the others say.
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
	fix := ""
	if key, bad := pgtext.Label(err.Key); object != "" && bad == nil {
		fix = fmt.Sprintf(`delete from %s where "key" = %s`, object, key)
	}
	v.error("setting_invalid", err.Key, fix, "The setting does not parse: %s.", err)
}
