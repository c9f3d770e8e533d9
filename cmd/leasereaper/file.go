package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fileName is what the mapping file is called where it is looked for.
const fileName = "leasereaper.yaml"

// noFile as --config says that no file is read.
const noFile = "none"

// file is a mapping file.
type file struct {
	Default   string            `yaml:"default"`
	Databases map[string]*entry `yaml:"databases"`

	path  string
	lines map[string]int // where each database begins
}

// fileError holds the faults of a file, each with its line.
type fileError struct {
	faults []string
}

// Error is the first fault, for commands that are about something else.
func (e *fileError) Error() string {
	if len(e.faults) == 1 {
		return e.faults[0]
	}
	return fmt.Sprintf("%s (and %d more: leasereaper config check)", e.faults[0], len(e.faults)-1)
}

// findFile returns the mapping file that a call names, or else that there is: in the
// working directory, or in the user's configuration. It is empty if there is none.
func findFile(flag string) (string, error) {
	if flag == "" {
		flag = os.Getenv("LEASEREAPER_CONFIG")
	}
	switch flag {
	case noFile:
		return "", nil
	case "":
	default:
		return flag, nil
	}
	folder := os.Getenv("XDG_CONFIG_HOME")
	if folder == "" {
		if home, err := os.UserHomeDir(); err == nil {
			folder = filepath.Join(home, ".config")
		}
	}
	for _, path := range []string{fileName, filepath.Join(folder, "leasereaper", fileName)} {
		_, err := os.Stat(path)
		switch {
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", misused("%v", err)
		}
	}
	return "", nil
}

// readMappingFile reads a mapping file, and reports every fault of it.
func readMappingFile(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, misused("%v", err)
	}
	f := &file{path: path, lines: map[string]int{}}
	var faults []string
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, &fileError{[]string{path + ": " + strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	faults = append(faults, f.walk(&document)...)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	faults = append(faults, decodeFaults(decoder.Decode(f))...)
	if len(faults) == 0 {
		faults = f.check()
	}
	for i, fault := range faults {
		faults[i] = path + ": " + fault
	}
	if len(faults) > 0 {
		return nil, &fileError{faults}
	}
	return f, nil
}

// unknownKey is the decoder's fault of a key that means nothing. It names a type of Go.
var unknownKey = regexp.MustCompile(`^(line \d+): field (.*) not found in type \S+$`)

// decodeFaults are the faults that the decoder found.
func decodeFaults(err error) []string {
	var faults *yaml.TypeError
	switch {
	case errors.As(err, &faults):
	case err != nil:
		return []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	default:
		return nil
	}
	texts := make([]string, len(faults.Errors))
	for i, text := range faults.Errors {
		texts[i] = unknownKey.ReplaceAllString(text, `$1: unknown key "$2"`)
	}
	return texts
}

// walk notes where databases begin, and reports keys that have no value: those of a file
// that somebody has not finished would count as left out.
func (f *file) walk(node *yaml.Node) (faults []string) {
	if node.Kind != yaml.MappingNode {
		for _, child := range node.Content {
			faults = append(faults, f.walk(child)...)
		}
		return faults
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Value == "only", key.Value == "on_reset", key.Value == "on_move":
			continue
		case key.Value == "databases":
			for j := 0; j+1 < len(value.Content); j += 2 {
				f.lines[value.Content[j].Value] = value.Content[j].Line
			}
		case value.ShortTag() == "!!null":
			faults = append(faults, fmt.Sprintf("line %d: %s has no value", key.Line, key.Value))
		}
		faults = append(faults, f.walk(value)...)
	}
	return faults
}

// databaseName is what a name looks like: it is typed, and stands in addresses.
var databaseName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// check reports what is wrong with the databases.
func (f *file) check() (faults []string) {
	if len(f.Databases) == 0 {
		return []string{"it has no databases"}
	}
	if _, ok := f.Databases[f.Default]; f.Default != "" && !ok {
		faults = append(faults, fmt.Sprintf("default: there is no database %q", f.Default))
	}
	for _, name := range f.names() {
		found := f.Databases[name].check()
		if !databaseName.MatchString(name) {
			found = append(found, `the name takes 1 to 40 letters, digits, "-" and "_"`)
		}
		for _, fault := range found {
			faults = append(faults, fmt.Sprintf("line %d: %s: %s", f.lines[name], name, fault))
		}
	}
	return faults
}

// names are the names of the databases, in the order of the file.
func (f *file) names() []string {
	return slices.SortedFunc(maps.Keys(f.Databases), func(a, b string) int { return f.lines[a] - f.lines[b] })
}

// choose returns the name of the database that a call is about.
func (f *file) choose(name string) (string, error) {
	switch {
	case name == "" && f.Default != "":
		name = f.Default
	case name == "" && len(f.Databases) == 1:
		name = f.names()[0]
	case name == "":
		return "", misused("which database? Say --database %s, or name the default in %s",
			strings.Join(f.names(), ", "), f.path)
	}
	if f.Databases[name] == nil {
		return "", misused("%s has no database %q, but %s", f.path, name, strings.Join(f.names(), ", "))
	}
	return name, nil
}
