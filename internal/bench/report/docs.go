package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// page is what has the generated parts.
const page = "performance.md"

// Docs writes the plots into a folder, and the tables into its performance.md:
// each between a pair of comments that name it, and nothing else there changes. A
// table of which nothing was measured stays as it is.
func (r Report) Docs(folder string) error {
	if err := Plots(folder, r.Result); err != nil {
		return err
	}
	if r.Soak != nil {
		if err := plotSoak(folder, r.Soak); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated := string(text)
	for _, part := range r.parts() {
		if updated, err = replace(updated, part.name, part.text); err != nil {
			return fmt.Errorf("report: %q: %w", path, err)
		}
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}

// part is a generated part of the page.
type part struct{ name, text string }

func (r Report) parts() []part {
	return append(r.soakParts(), []part{
		{"environment", r.environment()},
		{"goals", r.goals()},
		{"figures", r.figures()},
		{"anatomy", r.anatomy("anatomy")},
		{"anatomy-idle", r.anatomy("anatomy-idle")},
		{"batch-sizes", r.sizes("batch-sizes", "jobs in a batch", "rows/s")},
		{"backlogs", r.sizes("backlogs", "stale leases", "ms")},
	}...)
}

// replace puts a text between the comments of its name.
func replace(page, name, text string) (string, error) {
	opening, closing := "<!-- bench "+name+" -->\n", "<!-- bench end -->"
	before, rest, ok := strings.Cut(page, opening)
	if !ok {
		return "", fmt.Errorf("there is no line %q", strings.TrimSpace(opening))
	}
	_, after, ok := strings.Cut(rest, closing)
	if !ok {
		return "", fmt.Errorf("there is no %q after %q", closing, strings.TrimSpace(opening))
	}
	if text == "" {
		return page, nil
	}
	return before + opening + text + closing + after, nil
}
