package gates

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/gatesql"
)

var _ Source = CurrentSetting{}

// CurrentSetting is a [Source] that reads settings that are stored for a database or a
// role:
//
//	alter database shop set queue.lease.reaper_enabled = 'true'
//
// PostgreSQL gives such a value only to sessions that begin later, and a pool keeps its
// sessions for long. So each setting is read twice: its value in the session, and its
// value for new sessions, from pg_db_role_setting. A gate is open only if it is open by
// both values. So closing takes effect at once in every session, and opening in new
// sessions. The earlier of two window ends counts. An empty value means unset.
//
// A value without an entry in the catalog counts only if the session or its transaction
// has set it, with SET, SET LOCAL or set_config. If the session began with the value, the
// setting is unset. So ALTER DATABASE ... RESET and ALTER ROLE ... RESET, also of ALL,
// take effect at once in every session: the gates are closed, the backoff base is the
// default, and there is no window.
//
// A session begins with the values of its connection options, such as PGOPTIONS or pgx's
// RuntimeParams, of the server's command line and of its configuration file. Such a value
// counts only while the catalog has an entry for the same key. Then it may close a gate
// or bring the end of a window forward. Keep these settings out of the configuration file
// and of ALTER SYSTEM: their names have two dots, and PostgreSQL 15 does not start with
// such a name in the file.
//
// PostgreSQL does not say where a value comes from. If a session sets a setting to the
// same text that it began with, the setting counts as not set by the session.
//
// It is no fence: an apply that has read its gates commits, even if one is closed
// meanwhile. The role needs no privilege.
type CurrentSetting struct{}

// Read returns the values of those keys that are set.
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

// stricter chooses between two values of a setting: for a gate the value that closes it,
// if one does, for a window the earlier end, for the backoff base the stored value.
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

// earliest returns the earlier of two window ends, or the one that is not a time.
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
