package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// sqlFunction finds what a function that is called so returns.
//
//	$1 schema  text, NULL for the search path
//	$2 name    text
const sqlFunction = `-- verify.function
select coalesce(bool_or(p.prorettype in ('jsonb'::regtype, 'json'::regtype)), false),
  count(*) > 0
from pg_proc p
join pg_namespace n on n.oid = p.pronamespace
where p.proname = $2::text
  and case when $1::text is null then pg_function_is_visible(p.oid) else n.nspname = $1::text end`

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
	var returnsJSON, exists bool
	args := pgtext.Parts(v.target.Function)
	if err := v.tx.QueryRow(ctx, sqlFunction, args...).Scan(&returnsJSON, &exists); err != nil {
		return err
	}
	signature := fmt.Sprintf("%s(%s, text, text)", name, key)
	stubFunction := fmt.Sprintf(sqlStubFunction, signature)
	switch {
	case !exists:
		v.error("function_missing", signature, stubFunction, "The mover's function does not exist. "+
			"The fix creates one that refuses every job. Write its body.")
	case !fits || !returnsJSON:
		v.error("function_signature", signature, fmt.Sprintf("drop routine if exists %s;\n%s", signature, stubFunction),
			"The mover's function does not take these arguments, or does not return jsonb. "+
				"The fix creates one that refuses every job. Write its body, and drop the other.")
	case !mayExecute:
		v.error("privilege_missing", signature, fmt.Sprintf("grant execute on function %s to %s", signature, v.role),
			"The role %s lacks execute.", v.role)
	}
	return nil
}

// callable asks the planner whether the function takes a key and two texts, and whether
// the role may call it. The key is no constant: the planner would call an immutable
// function to be done with it.
func (v *verifier) callable(ctx context.Context, function, keyType string) (fits, allowed bool, err error) {
	err = v.try(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, fmt.Sprintf(
			"explain select %s(k.id, ''::text, ''::text) from (select null::%s as id offset 0) k", function, keyType))
		return err
	})
	switch code := pgtx.Code(err); {
	case code == "42501":
		return true, false, nil
	case pgtx.Class(code) == "42":
		return false, false, nil
	}
	return err == nil, err == nil, err
}
