//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

// errPlatform is why no server is started where there is no Unix.
var errPlatform = errors.New("this platform has no way to start a server, only PGTEST_DATABASE_URL is supported")

// account is whom PostgreSQL runs as.
type account struct{ name string }

func unprivileged() (account, error) { return account{}, errPlatform }

func (account) runAs(*exec.Cmd) {}
