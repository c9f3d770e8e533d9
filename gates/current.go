package gates

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/gatesql"
)

var _ Source = CurrentSetting{}

// CurrentSetting reads settings that are stored for a database or a role:
//
//	alter database shop set queue.lease.reaper_enabled = 'true'
//
// PostgreSQL gives such a value to sessions that begin later, and a pool keeps
// its sessions for long. So each value is looked up twice: as the session has it,
// and as it stands for sessions to come, in pg_db_role_setting. A gate is open
// only when both say so: closing works at once, also in sessions that are open,
// and opening with the next session. Of two ends of a window the earlier one
// counts. An empty value means unset.
//
// A value that is stored nowhere counts only if the session or its transaction has
// set it: with SET, SET LOCAL or set_config. One that the session began with is
// unset. So ALTER DATABASE ... RESET and ALTER ROLE ... RESET, also of ALL, work at
// once in every session: the gates are closed, the base is the default, and there
// is no window any more.
//
// A value from connection options, as in PGOPTIONS or pgx's RuntimeParams, is one
// that the session began with, and so is one from the server's command line or its
// configuration file. It opens no gate and sets no base, and a window's end among
// them bounds nothing. It counts only while the catalog has an entry for the same
// key: then it may close a gate or bring the end of a window forward. Keep these
// settings out of the configuration file and of ALTER SYSTEM in any case: their
// names have two dots, and PostgreSQL 15 does not start with one in the file.
//
// PostgreSQL does not tell who set a value of this kind. One that is set to the
// very text that the session began with counts as the latter.
//
// It is no fence: an apply that has read its gates commits, even if one is closed
// meanwhile. The role needs no privilege.
type CurrentSetting struct{}

// Read reads what is set of keys.
func (CurrentSetting) Read(ctx context.Context, tx pgx.Tx, keys []string) (Values, error) {
	answer, err := read(ctx, tx, gatesql.CurrentSetting{}, keys, false)
	if err != nil {
		return nil, err
	}
	for _, setting := range answer.Unclear {
		if value := stricter(setting.Key, setting.First, setting.Second); value != nil {
			answer.Values[setting.Key] = *value
		}
	}
	return answer.Values, nil
}

// stricter returns the one of two values that keeps a gate closed, if one does; of
// two windows' ends the earlier one; of two backoff bases the stored one.
func stricter(key string, session, stored *string) *string {
	switch key {
	case BackoffBaseSec:
		return stored
	case WindowUntil:
		return earliest(session, stored)
	}
	value := Values{}
	if session != nil {
		value[key] = *session
	}
	if open, err := value.Gate(key, time.Time{}); err != nil || !open {
		return session
	}
	return stored
}

// earliest returns the earlier of two windows' ends, or the one that is no time.
func earliest(session, stored *string) *string {
	switch {
	case session == nil:
		return stored
	case stored == nil:
		return session
	}
	first, err := Values{WindowUntil: *session}.Window()
	if err != nil {
		return session
	}
	second, err := Values{WindowUntil: *stored}.Window()
	if err != nil || before(second, first) {
		return stored
	}
	return session
}
