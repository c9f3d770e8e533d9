package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/load"
)

// write writes the files that Linux has, of a machine whose processors were in use
// and idle for so many ticks.
func write(t *testing.T, folder string, used, idle int) {
	t.Helper()
	stat := fmt.Sprintf("cpu  %d 0 0 %d 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n", used, idle)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "stat"), []byte(stat), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "loadavg"), []byte("0.42 0.20 0.10 1/99 1234\n"), 0o600))
}

// Figures of a busy machine that are shown as those of a quiet one make people
// look for a fault that the code does not have.
func TestOneBusyPauseIsEnough(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		used []int // of a hundred ticks, pause by pause
		want string
	}{
		"nothing else runs":   {[]int{0, 0}, "yes: other work took at most 0% of the processors"},
		"a little else runs":  {[]int{2, 9}, "yes: other work took at most 9% of the processors"},
		"busy before the run": {[]int{60, 1}, "no: other work took at most 60% of the processors"},
		"busy later":          {[]int{1, 50, 1}, "no: other work took at most 50% of the processors"},
		"nobody looked":       {nil, "unknown: nobody looked"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, used, idle, pauses := t.TempDir(), 1000, 1000, 0
			write(t, folder, used, idle)
			machine := load.New(folder, func() {
				used, idle, pauses = used+test.used[pauses], idle+100-test.used[pauses], pauses+1
				write(t, folder, used, idle)
			})
			for range test.used {
				machine.Look()
			}
			require.Equal(t, test.want, machine.Verdict())
		})
	}
}

// The page shows the load at both ends of the run.
func TestSettingsShowBothEnds(t *testing.T) {
	t.Parallel()
	folder, used := t.TempDir(), 0
	write(t, folder, used, 0)
	machine := load.New(folder, func() {
		used += 5
		write(t, folder, used, 20*used-used)
	})
	machine.Look()
	machine.Look()

	settings := machine.Settings()

	require.Len(t, settings, 3)
	require.Equal(t, "5% of the processors, average 0.42", settings[1].Value)
	require.Equal(t, "5% of the processors, average 0.42", settings[2].Value)
}

// A system that does not tell is no reason to measure nothing, and no reason to
// call the machine quiet.
func TestWithoutTheFilesTheLoadIsUnknown(t *testing.T) {
	t.Parallel()

	for name, stat := range map[string]string{
		"no file":      "",
		"another line": "intr 1 2 3\n",
		"words":        "cpu a b c d e f g h\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if stat != "" {
				write(t, folder, 1, 1)
				require.NoError(t, os.WriteFile(filepath.Join(folder, "stat"), []byte(stat), 0o600))
			}
			machine := load.New(folder, func() {})
			machine.Look()
			require.Contains(t, machine.Verdict(), "unknown: ")
			require.Len(t, machine.Settings(), 1)
		})
	}
}
