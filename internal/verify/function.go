package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// sqlFunction tells whether there is a function of that name.
//
//	$1 schema  text, NULL for the search path
//	$2 name    text
const sqlFunction = `-- verify.function
select exists (
  select from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  where p.proname = $2::text
    and case when $1::text is null then pg_function_is_visible(p.oid) else n.nspname = $1::text end
)`

// sqlStubFunction is a function that moves no job.
const sqlStubFunction = `create function %s returns jsonb language sql as $$
  select jsonb_build_object('refused', true, 'reason', 'not written yet')
$$`

// moverFunction checks whether the function exists and can be called as the mover calls
// it. It is not called.
func (v *verifier) moverFunction(ctx context.Context) error {
	if v.target.Function == nil || v.queue == nil {
		return nil
	}
	name, key := v.target.Function.Sanitize(), v.keyType()
	fits, mayExecute, err := v.callable(ctx, name, key)
	if err != nil {
		return err
	}
	var exists bool
	if err := v.tx.QueryRow(ctx, sqlFunction, pgtext.Parts(v.target.Function)...).Scan(&exists); err != nil {
		return err
	}
	signature := fmt.Sprintf("%s(%s, text, text)", name, key)
	stubFunction := fmt.Sprintf(sqlStubFunction, signature)
	switch {
	case !exists:
		v.error("function_missing", signature, stubFunction, "The mover's function does not exist. "+
			"The fix creates one that refuses every job. Write its body.")
	case !fits:
		v.error("function_signature", signature, fmt.Sprintf("drop routine if exists %s;\n%s", signature, stubFunction),
			"The mover's function does not take these arguments, or does not return jsonb. "+
				"The fix creates one that refuses every job. Write its body, and drop the other.")
	case !mayExecute:
		v.error("privilege_missing", signature, fmt.Sprintf("grant execute on function %s to %s", signature, v.role),
			"The role %s lacks execute.", v.role)
	}
	return nil
}

// callable has the server resolve the call of the function with a key and two texts: no
// row is read, so it is not called. It fits if the one that would be called returns JSON,
// or a domain over that, which a query's column has the type below of. The key is no
// constant: the planner would call an immutable function to be done with it.
func (v *verifier) callable(ctx context.Context, function, keyType string) (fits, allowed bool, err error) {
	err = v.try(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, fmt.Sprintf(
			"select %s(k.id, ''::text, ''::text) from (select null::%s as id where false offset 0) k",
			function, keyType))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() { // there is none
		}
		for _, column := range rows.FieldDescriptions() {
			fits = column.DataTypeOID == pgtype.JSONBOID || column.DataTypeOID == pgtype.JSONOID
		}
		return rows.Err()
	})
	switch code := pgtx.Code(err); {
	case code == "42501":
		return true, false, nil
	case pgtx.Class(code) == "42":
		return false, false, nil
	}
	return fits, err == nil, err
}
