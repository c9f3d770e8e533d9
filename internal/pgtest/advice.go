package pgtest

import (
	"os"
	"path/filepath"
	"runtime"
)

// installers has programs that install PostgreSQL, with the command to type.
var installers = []struct{ program, command string }{
	{"apt-get", "apt-get install postgresql"},
	{"dnf", "dnf install postgresql-server"},
	{"zypper", "zypper install postgresql-server"},
	{"pacman", "pacman -S postgresql"},
	{"apk", "apk add postgresql"},
	{"brew", "brew install postgresql@17"},
}

const (
	adviceURL = "start the server that PGTEST_DATABASE_URL names, or unset PGTEST_DATABASE_URL"
	adviceBin = "set PGTEST_BIN to a folder with initdb and postgres, or unset PGTEST_BIN"
	orSetURL  = "\nor set PGTEST_DATABASE_URL to the connection string of a running server"
)

// advice returns how to get a PostgreSQL on this system.
func (e Environment) advice() string {
	if runtime.GOOS == "windows" {
		return "install PostgreSQL and start it:\n    winget install PostgreSQL.PostgreSQL.17\n" +
			"then set PGTEST_DATABASE_URL to its connection string"
	}
	for _, installer := range installers {
		if e.find(installer.program) == "" {
			continue
		}
		command := installer.command
		if installer.program != "brew" && os.Geteuid() != 0 {
			command = "sudo " + command
		}
		return "install PostgreSQL:\n    " + command + orSetURL
	}
	return "install PostgreSQL, see https://www.postgresql.org/download/" + orSetURL
}

// find returns the path of a program in Path, or "".
func (e Environment) find(program string) string {
	for _, folder := range e.Path {
		path := filepath.Join(folder, program)
		info, err := os.Stat(path)
		if err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
