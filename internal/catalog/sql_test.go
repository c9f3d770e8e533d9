package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/catalog"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// The fix for a key is run unchanged. The index of a constraint cannot be dropped by
// itself.
func TestReadKeys(t *testing.T) {
	t.Parallel()

	table := read(t, pgtest.Empty(t), `create table t (a int, b int, constraint "C" unique (b, a),
		constraint "X" exclude (a with =), constraint "Y" exclude using gist (box(point(a, b), point(a, b)) with &&));
		create unique index "I" on t (b)`)

	require.ElementsMatch(t, []catalog.Key{
		{Index: `"C"`, Constraint: `"C"`, Columns: []string{"b", "a"}},
		{Index: `"I"`, Columns: []string{"b"}},
		{Index: `"X"`, Constraint: `"X"`, Excludes: true, Columns: []string{"a"}},
	}, table.Keys)
}

// A CHECK uses its columns, and a domain's CHECK uses one called value. A constraint that
// is not enforced rejects nothing.
func TestReadChecks(t *testing.T) {
	t.Parallel()

	table := read(t, pgtest.Empty(t), `create domain d as text check (value <> 'x'); create domain e as d;
		create table t (a int, b int, c e, check (a < b)); alter table t add constraint "N" check (a > 0) not valid`)

	require.Equal(t, []catalog.Check{
		{Name: `"N"`, Expression: "(a > 0)", Columns: []string{"a"}},
		{Name: "d_check", Expression: "(VALUE <> 'x'::text)", Columns: []string{"c"}, Domain: "d"},
		{Name: "t_check", Expression: "(a < b)", Columns: []string{"a", "b"}},
	}, table.Checks)
}

// The claim's index is identified by its columns, in their order, and its predicate, on
// each partition.
func TestReadIndexes(t *testing.T) {
	t.Parallel()

	table := read(t, pgtest.Empty(t), `create table t (a int, b int) partition by list (a); create table u partition of t default;
		create index i on u (b desc, (a + 1), a) include (b) where a > 1; create index h on u using hash (a)`)

	require.Equal(t, []catalog.Index{
		{Schema: "public", Relation: "u", Name: "i", Columns: []string{"b", "", "a"}, Predicate: "(a > 1)"},
	}, table.Indexes)
	require.Equal(t, []string{"a"}, table.Partition)
}

// PostgreSQL rejects each update of a published table without a replica identity.
func TestReadUnidentified(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		sql  string
		want []catalog.Unidentified
	}{
		"a key":                    {`create table t (a int primary key); create publication p for table t`, nil},
		"no key":                   {`create table t (a int); create publication p for table t`, []catalog.Unidentified{{Name: "t", Updates: true, Deletes: true}}},
		"a key that is not used":   {`create table t (a int primary key); alter table t replica identity nothing; create publication p for table t`, []catalog.Unidentified{{Name: "t", Keyed: true, Updates: true, Deletes: true}}},
		"a key that is deferrable": {`create table t (a int primary key deferrable); create publication p for table t`, []catalog.Unidentified{{Name: "t", Updates: true, Deletes: true}}},
		"the whole row":            {`create table t (a int); alter table t replica identity full; create publication p for table t`, nil},
		"an index":                 {`create table t (a int not null unique); alter table t replica identity using index t_a_key; create publication p for table t`, nil},
		"an index that is gone":    {`create table t (a int not null unique, b int unique); alter table t replica identity using index t_a_key; alter table t drop constraint t_a_key; create publication p for table t`, []catalog.Unidentified{{Name: "t", Updates: true, Deletes: true}}},
		"deletes alone":            {`create table t (a int); create publication p for table t with (publish = 'delete')`, []catalog.Unidentified{{Name: "t", Deletes: true}}},
		"inserts alone":            {`create table t (a int); create publication p for table t with (publish = 'insert')`, nil},
		"a partition of a parent":  {`create table t (a int) partition by list (a); create table u partition of t default; create publication p for table t`, []catalog.Unidentified{{Name: "u", Updates: true, Deletes: true}}},
		"a partition by itself":    {`create table t (a int) partition by list (a); create table u partition of t default; create publication p for table u`, []catalog.Unidentified{{Name: "u", Updates: true, Deletes: true}}},
		"a parent as a whole":      {`create table t (a int) partition by list (a); create table u partition of t default; create publication p for table t with (publish_via_partition_root)`, []catalog.Unidentified{{Name: "u", Updates: true, Deletes: true}}},
		"no publication":           {`create table t (a int)`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ElementsMatch(t, test.want, read(t, pgtest.Empty(t), test.sql).Unidentified)
		})
	}
}
