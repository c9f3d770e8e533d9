package deadletter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// insufficientPrivilege is the SQLSTATE of a role that lacks a privilege, or of a
// policy that rejects a row.
const insufficientPrivilege = "42501"

// failure tells why a job was rejected.
func failure(letter, job string, err error) Failure {
	f := Failure{DeadLetterID: letter, JobID: job, Error: errKeptBack.Error()}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		f.SQLState, f.Error = pgErr.Code, message(pgErr)
	}
	return f
}

// message is PostgreSQL's own, unless it may hold a stored value. Then it says
// what is known besides, which is names.
func message(err *pgconn.PgError) string {
	switch {
	case namesOnly(err):
		return err.Message
	case err.ConstraintName != "":
		return fmt.Sprintf("the constraint %q rejected the row", err.ConstraintName)
	case err.ColumnName != "":
		return fmt.Sprintf("the column %q rejected the row", err.ColumnName)
	case class(err.Code) == "22":
		return "a stored value does not fit its column"
	}
	return "the row was rejected; PostgreSQL's message is left out, as it may hold what the job held"
}

// namesOnly reports whether a message holds names and numbers alone. Its SQLSTATE
// does not tell: a trigger raises any of them with any text, and messages of the
// types quote their input under several classes. So it is told by the server's
// source file that reported the error: those that check constraints, privileges,
// locks and the sizes of rows. What has a position is about the text of the
// statement, which holds no values.
func namesOnly(err *pgconn.PgError) bool {
	return err.Position != 0 || slices.Contains([]string{
		"execMain.c", "execExprInterp.c", "execIndexing.c", "execPartition.c", "domains.c", // constraints, policies
		"nbtinsert.c", "nbtutils.c", "ri_triggers.c", // unique and foreign keys
		"aclchk.c", "postgres.c", "lock.c", "proc.c", "deadlock.c", "heapam.c", "hio.c", // privileges, time-outs, sizes
	}, err.File)
}

// discreet is an error of a write without what it may hold of a job.
func discreet(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err
	}
	quiet := *pgErr
	quiet.Message = message(pgErr)
	quiet.Detail, quiet.Hint, quiet.Where, quiet.InternalQuery = "", "", "", ""
	return &quiet
}
