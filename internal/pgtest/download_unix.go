//go:build unix

package pgtest

import (
	"os"
	"path/filepath"
	"syscall"
)

// removeOpenLogs removes the empty log that embedded-postgres makes among the
// temporary files, keeps open and leaves there. Another process's is not open in
// this one, and stays.
func removeOpenLogs() {
	logs, _ := filepath.Glob(filepath.Join(os.TempDir(), "embedded_postgres_log*"))
	for _, log := range logs {
		if isOpen(log) {
			_ = os.Remove(log)
		}
	}
}

// isOpen reports whether this process has a file open, as one of the descriptors
// that a process commonly has.
func isOpen(path string) bool {
	var file, open syscall.Stat_t
	if err := syscall.Stat(path, &file); err != nil {
		return false
	}
	for descriptor := range 1024 {
		err := syscall.Fstat(descriptor, &open)
		if err == nil && open.Dev == file.Dev && open.Ino == file.Ino {
			return true
		}
	}
	return false
}
