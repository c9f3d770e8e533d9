//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that PostgreSQL runs as. The zero account is this process's user.
type account struct {
	name       string
	credential *syscall.Credential
}

// unprivileged returns the account to run PostgreSQL under. PostgreSQL refuses to run as
// root. So if this process is root's, the account is postgres, else nobody.
func unprivileged() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		found, err = user.Lookup("nobody")
	}
	if err != nil {
		return account{}, fmt.Errorf("PostgreSQL refuses to run as root, and user nobody does not exist: %w", err)
	}
	return accountOf(found)
}

func accountOf(found *user.User) (account, error) {
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %q: %w", found.Username, err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("group of user %q: %w", found.Username, err)
	}
	credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return account{name: found.Username, credential: credential}, nil
}

// runAs makes command run under the account, in a process group of its own, so that Ctrl-C
// does not reach it, and in a folder that every account may enter.
func (a account) runAs(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
	command.Dir = "/"
	command.Env = serverEnvironment(os.Environ())
}
