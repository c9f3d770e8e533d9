package service

import (
	_ "embed" // for AuditSchema
	"net/http"

	"github.com/lease-governance/leasereaper/console"
)

// AuditSchema is the SQL that makes the table of [console.Audit].
//
//go:embed audit.sql
var AuditSchema string

// consolePath is where the console is mounted.
const consolePath = "/console"

// makeConsole makes the pages for people. They have a pool of their own, so that nobody
// who looks takes a connection that a renewal waits for.
func (s *Service) makeConsole() error {
	if s.cfg.Console == nil {
		return nil
	}
	handler, err := console.New(console.Config{
		Databases: []console.Database{{
			Name:    "queue",
			Look:    s.cfg.Console,
			Act:     s.cfg.Console,
			Reaper:  s.cfg.Reaper,
			History: s.cfg.History,
			Passes:  &s.passes,
		}},
		Access: s.cfg.Access,
		Logger: s.cfg.Logger,
	})
	s.console = http.StripPrefix(consolePath, handler)
	return err
}
