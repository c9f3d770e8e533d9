//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

// errPlatform is the error of a start on a platform that is not Unix.
var errPlatform = errors.New("a server can be started only on Unix: set PGTEST_DATABASE_URL")

// account is the user that PostgreSQL runs as.
type account struct{ name string }

func unprivileged() (account, error) { return account{}, errPlatform }

func (account) runAs(*exec.Cmd) {}
