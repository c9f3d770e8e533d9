//go:build unix

package main

import "syscall"

// ownSession makes the pseudo-terminal on stdin the controlling one of a program.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }
