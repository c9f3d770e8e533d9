package reaper

// LockTimeoutMillis is the lock_timeout of a configuration with its defaults.
func (c Config) LockTimeoutMillis() string { return lockTimeoutMillis(c.withDefaults().LockTimeout) }
