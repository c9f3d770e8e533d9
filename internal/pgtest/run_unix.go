//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// run is one run of a server, from its start to the end of its last process.
type run struct {
	pid   int
	ended chan struct{}
	// forget makes the supervisor wait for the process. Until then no other process
	// can have the pid.
	forget func()
}

// newRun reads from alive, a pipe that ends with the last process of the server.
func newRun(pid int, alive io.ReadCloser, forget func()) *run {
	r := &run{pid: pid, ended: make(chan struct{}), forget: sync.OnceFunc(forget)}
	go func() {
		_, _ = io.Copy(io.Discard, alive)
		_ = alive.Close()
		close(r.ended)
	}()
	return r
}

func (r *run) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// kill sends SIGKILL to the postmaster. The other processes then end by themselves.
func (r *run) kill() error { return syscall.Kill(r.pid, syscall.SIGKILL) }

// shutDown makes a fast shutdown unless the server has ended: clients are disconnected,
// and committed data is written to disk.
func (r *run) shutDown() error {
	if !r.hasEnded() {
		if err := syscall.Kill(r.pid, syscall.SIGINT); err != nil {
			return err
		}
	}
	err := r.wait()
	r.forget()
	return err
}

// wait returns when the server has ended.
func (r *run) wait() error {
	select {
	case <-r.ended:
		return nil
	case <-time.After(startTimeout):
		return fmt.Errorf("server %d still has processes after %s: %w", r.pid, startTimeout, os.ErrDeadlineExceeded)
	}
}

// openFIFO opens a named pipe for reading, also without a writer. A read blocks its thread,
// since not every Unix can poll a named pipe.
func openFIFO(path string) (*os.File, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}
