package reaper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// sqlFunction finds what a function that is called so returns, and whether the
// role may call it.
//
//	$1 schema  text, NULL for the search path
//	$2 name    text
const sqlFunction = `-- verify.function
select coalesce(bool_or(p.prorettype in ('jsonb'::regtype, 'json'::regtype)), false),
  coalesce(bool_or(has_function_privilege(p.oid, 'execute')), false),
  count(*) > 0
from pg_proc p
join pg_namespace n on n.oid = p.pronamespace
where p.proname = $2::text
  and case when $1::text is null then pg_function_is_visible(p.oid) else n.nspname = $1::text end`

// functionFacts are the columns of sqlFunction.
type functionFacts struct{ returnsJSON, mayExecute, exists bool }

// moverFunction looks whether the function is there and can be called as the
// mover calls it. It is not called.
func (v *verifier) moverFunction(ctx context.Context, mover deadletter.Function) error {
	name := mover.Name
	if len(name) == 0 {
		name = pgx.Identifier{"fn_job_move_to_dead_letter"}
	}
	if v.queueFound == nil {
		return nil
	}
	var schema *string
	if len(name) == 2 {
		schema = &name[0]
	}
	var f functionFacts
	err := v.tx.QueryRow(ctx, sqlFunction, schema, name[len(name)-1]).Scan(&f.returnsJSON, &f.mayExecute, &f.exists)
	if err != nil {
		return err
	}
	fits, err := v.callable(ctx, name.Sanitize(), v.keyType())
	if err != nil {
		return err
	}
	v.function(fmt.Sprintf("%s(%s, text, text)", name.Sanitize(), v.keyType()), f, fits)
	return nil
}

// function judges what is known of the mover's function.
func (v *verifier) function(signature string, f functionFacts, fits bool) {
	switch {
	case !f.exists:
		v.add(Problem{
			Code: CodeFunctionMissing, Object: signature,
			Message: "The mover's function is not there. The fix makes one that refuses every job; write its body.",
			Fix:     stub(signature),
		})
	case !fits || !f.returnsJSON:
		v.add(Problem{
			Code: CodeFunctionSignature, Object: signature,
			Message: "The mover's function cannot be called so, or does not return jsonb. " +
				"The fix makes one that refuses every job; write its body, and drop the other.",
			Fix: fmt.Sprintf("drop function if exists %s;\n%s", signature, stub(signature)),
		})
	case !f.mayExecute:
		v.add(Problem{
			Code: CodePrivilegeMissing, Object: signature,
			Message: fmt.Sprintf("The role %s lacks execute.", v.role),
			Fix:     fmt.Sprintf("grant execute on function %s to %s", signature, v.role),
		})
	}
}

// callable asks the planner whether the function takes a key and two texts, in a
// savepoint, since its no is an error. The key is not a constant, or the planner
// would call an immutable function to be done with it.
func (v *verifier) callable(ctx context.Context, function, keyType string) (bool, error) {
	savepoint, err := v.tx.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer pgtx.Rollback(ctx, savepoint)
	_, err = savepoint.Exec(ctx, fmt.Sprintf(
		"explain select %s(k.id, ''::text, ''::text) from (select null::%s as id offset 0) k", function, keyType))
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && pgErr.Code == "42501": // it fits, and the role may not call it
		return true, nil
	case errors.As(err, &pgErr) && pgtx.Class(pgErr.Code) == "42":
		return false, nil
	}
	return err == nil, err
}

// stub is a function of a signature that refuses every job.
func stub(signature string) string {
	return "create function " + signature + ` returns jsonb language sql as $$
  select jsonb_build_object('refused', true, 'reason', 'not written yet')
$$`
}
