package reaper

import "github.com/lease-governance/leasereaper/internal/pgtx"

// LockTimeoutMillis is the lock_timeout of a configuration with its defaults.
func (c Config) LockTimeoutMillis() string {
	return pgtx.LockTimeoutMillis(c.withDefaults().LockTimeout)
}
