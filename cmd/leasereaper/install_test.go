package main

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

const library = "github.com/lease-governance/leasereaper"

// published are the modules that are published together, and their folders.
var published = map[string]string{
	library:                      "../..",
	library + "/console":         "../../console",
	library + "/cmd/leasereaper": ".",
}

// The line of the README that installs the tool would fail for everybody but those who
// have a checkout, or install a tool without its files.
func TestTheToolIsInstalledFromItsModules(t *testing.T) {
	t.Parallel()

	mine := goMod(t, ".")
	require.Empty(t, mine.Replace, "go install refuses a module that replaces others")
	version := requirement(t, mine, library)
	proxy, bin := t.TempDir(), t.TempDir()
	files := map[string]bool{}
	for path, folder := range published {
		publish(t, proxy, module.Version{Path: path, Version: version}, folder, files)
	}
	for file := range strings.FieldsSeq(runGo(t, nil, "list", "-deps", "-f", embedded, ".")) {
		require.Contains(t, files, file, "no zip has it")
	}

	runGo(t, []string{
		"GOWORK=off", "GOBIN=" + bin, "GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off",
		"GOMODCACHE=" + t.TempDir(), // the cache of this machine must not keep what is not published
		"GOPROXY=file://" + filepath.ToSlash(proxy) + ",file://" + filepath.ToSlash(downloads(t)),
	}, "install", library+"/cmd/leasereaper@latest")

	tool := filepath.Join(bin, "leasereaper")
	require.Equal(t, "leasereaper "+version+"\n", run(t, exec.CommandContext(t.Context(), tool, "--version")))
	require.Contains(t, run(t, exec.CommandContext(t.Context(), tool, "completion", "bash")), "__start_leasereaper")
}

// embedded prints the files that packages of the project embed.
const embedded = `{{if .Module}}{{if eq .Module.Version ""}}{{range .EmbedFiles}}{{$.ImportPath}}/{{.}}
{{end}}{{end}}{{end}}`

// A go.mod that was left behind would build the tool with an old library, or with a
// version that does not exist.
func TestTheModulesNeedOneVersionOfTheLibrary(t *testing.T) {
	t.Parallel()

	want := requirement(t, goMod(t, "."), library)
	for _, folder := range published {
		file := goMod(t, folder)
		require.Empty(t, file.Replace, folder)
		for _, required := range file.Require {
			if published[required.Mod.Path] != "" {
				require.Equal(t, want, required.Mod.Version, "%s needs %s", folder, required.Mod.Path)
			}
		}
	}
}

func goMod(t *testing.T, folder string) *modfile.File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	require.NoError(t, err)
	file, err := modfile.Parse(folder, text, nil)
	require.NoError(t, err)
	return file
}

// requirement is the version of a module that a go.mod asks for.
func requirement(t *testing.T, file *modfile.File, path string) string {
	t.Helper()
	for _, required := range file.Require {
		if required.Mod.Path == path {
			return required.Mod.Version
		}
	}
	require.FailNow(t, "go.mod does not require "+path)
	return ""
}

// publish adds a version of a module to the folder of a proxy, and the files of its zip
// to those of all modules.
func publish(t *testing.T, proxy string, m module.Version, folder string, files map[string]bool) {
	t.Helper()
	const readable = 0o644
	escaped, err := module.EscapePath(m.Path)
	require.NoError(t, err)
	versions := filepath.Join(proxy, escaped, "@v")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	var zipped bytes.Buffer
	require.NoError(t, modzip.CreateFromDir(&zipped, m, folder))
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"list":              []byte(m.Version + "\n"),
		m.Version + ".info": []byte(`{"Version": "` + m.Version + `"}`),
		m.Version + ".mod":  mod,
		m.Version + ".zip":  zipped.Bytes(),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(versions, name), content, readable))
	}
	reader, err := zip.NewReader(bytes.NewReader(zipped.Bytes()), int64(zipped.Len()))
	require.NoError(t, err)
	for _, file := range reader.File {
		files[strings.Replace(file.Name, "@"+m.Version, "", 1)] = true
	}
}

// downloads is a proxy of the other modules: what this machine has downloaded, which
// has all that the tool needs after a listing of its packages.
func downloads(t *testing.T) string {
	t.Helper()
	alone := filepath.Join(t.TempDir(), "go.mod")
	file := goMod(t, ".")
	for path, folder := range published {
		absolute, err := filepath.Abs(folder)
		require.NoError(t, err)
		if path != file.Module.Mod.Path {
			require.NoError(t, file.AddReplace(path, "", absolute, ""))
		}
	}
	text, err := file.Format()
	require.NoError(t, err)
	sums, err := os.ReadFile("go.sum")
	require.NoError(t, err)
	const readable = 0o644
	require.NoError(t, os.WriteFile(alone, text, readable))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(alone, ".mod")+".sum", sums, readable))
	runGo(t, []string{"GOWORK=off"}, "list", "-deps", "-mod=mod", "-modfile="+alone, ".")
	cache := strings.TrimSpace(runGo(t, nil, "env", "GOMODCACHE"))
	return filepath.Join(cache, "cache", "download")
}

func runGo(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Env = append(os.Environ(), environ...)
	return run(t, command)
}

// run returns what a program prints on stdout.
func run(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	require.NoError(t, err, "%s\n%s", command, errs.String())
	return string(out)
}
