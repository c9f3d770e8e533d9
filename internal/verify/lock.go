package verify

import (
	"context"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// remote reports a foreign table: what a lock's wait costs is not the library's to bound.
func (v *verifier) remote(t *catalog.Table, what string) {
	if t.Kind == "f" {
		v.warn("lock_ineffective", t.SQL, "",
			"The table is a foreign table: lock_timeout and SKIP LOCKED do not reach its server, which may lock "+
				"nothing at all. %s may wait without a bound for what someone else has locked there.", what)
	}
}

// sqlUnlocked tells whether a view, or one below it, reads what FOR SHARE of it does not
// lock: by a subquery in an expression, a CTE, or a function that may read tables.
//
//	$1 view  oid
const sqlUnlocked = `-- verify.unlocked
with recursive views as (
  select $1::oid as oid
  union
  select d.refobjid
  from views v
  join pg_rewrite r on r.ev_class = v.oid and r.ev_type = '1'
  join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
)
select coalesce(bool_or(
  r.ev_action::text ~ ':hasSubLinks true|:cteList \('
  or exists (
    select
    from pg_depend d
    join pg_proc p on p.oid = d.refobjid and p.provolatile <> 'i'
    where d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_proc'::regclass
  )
), false)
from views v
join pg_rewrite r on r.ev_class = v.oid and r.ev_type = '1'`

// fence checks whether the lock on a row of the settings holds its value: of a view
// PostgreSQL locks the rows of those tables alone that its query reads as such.
func (v *verifier) fence(ctx context.Context, t *catalog.Table) error {
	v.remote(t, "A read of the gates")
	if t.Kind != "v" {
		return nil
	}
	var unlocked bool
	err := v.tx.QueryRow(ctx, sqlUnlocked, t.OID).Scan(&unlocked)
	if err == nil && unlocked {
		v.warn("lock_ineffective", t.SQL, "",
			"The table is a view that has a subquery, a CTE or a function: FOR SHARE does not lock what these read. "+
				"An apply may commit after a gate was closed there. A view that joins the tables has no such gap.")
	}
	return err
}
