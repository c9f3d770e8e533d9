package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"

	"github.com/lease-governance/leasereaper/reaper"
)

// faultAt is a fault of a value. The decoder collects faults of this type.
func faultAt(node *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: ", node.Line) + fmt.Sprintf(format, args...)}}
}

// spanOf is a duration in a file.
type spanOf time.Duration

// UnmarshalYAML reads 90s, 15m, 1h or 2d.
func (d *spanOf) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := parseAge(node.Value)
	if err != nil {
		return faultAt(node, "%v", err)
	}
	*d = spanOf(parsed)
	return nil
}

// columnName is the name of a column. The word none, without quotes, says that the queue
// has no such column.
type columnName string

// UnmarshalYAML reads a name.
func (c *columnName) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode || node.Value == "" {
		return faultAt(node, "want the name of a column, or none")
	}
	*c = columnName(node.Value)
	if node.Value == "none" && isPlain(node) {
		*c = reaper.None
	}
	return nil
}

// tableName is the name of a table: shop.jobs, or [shop, "jobs.2026"] where a part has a
// dot.
type tableName pgx.Identifier

// UnmarshalYAML reads a name.
func (n *tableName) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Value != "" {
		*n = tableName(split(node.Value))
		return nil
	}
	var parts []string
	if node.Kind != yaml.SequenceNode || node.Decode(&parts) != nil {
		return faultAt(node, "want the name of a table, as in shop.jobs")
	}
	*n = parts
	return nil
}

// setValues are values of columns. The words now and keep, without quotes, are the
// reaper's; in quotes they are texts.
type setValues reaper.Set

// UnmarshalYAML reads a value for each column.
func (s *setValues) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return faultAt(node, "want columns with their values")
	}
	*s = setValues{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		value, err := setValue(node.Content[i+1])
		if err != nil {
			return err
		}
		(*s)[node.Content[i].Value] = value
	}
	return nil
}

func setValue(node *yaml.Node) (any, error) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.ScalarNode {
		return nil, faultAt(node, "want null, now, keep, true, false, a whole number or a text")
	}
	switch node.ShortTag() {
	case "!!null":
		return nil, nil //nolint:nilnil // nil is the value: NULL
	case "!!bool":
		return strings.EqualFold(node.Value, "true"), nil
	case "!!int":
		var n int64
		if err := node.Decode(&n); err != nil {
			return nil, faultAt(node, "%s is no bigint", node.Value)
		}
		return n, nil
	}
	return wordOrText(node), nil
}

// wordOrText reads a text, or one of the reaper's words, which stand without quotes.
func wordOrText(node *yaml.Node) any {
	switch {
	case isPlain(node) && node.Value == "now":
		return reaper.Now
	case isPlain(node) && node.Value == "keep":
		return reaper.Keep
	}
	return node.Value
}

// isPlain reports whether a text stands without quotes.
func isPlain(node *yaml.Node) bool { return node.Style == 0 }

// policyOf is a backoff in a file: one of exponential with jitter, fixed, or the attempts
// to a power, in seconds.
type policyOf struct {
	Jitter float64 `yaml:"jitter"`
	Fixed  *spanOf `yaml:"fixed"`
	Power  int     `yaml:"power"`
	Plus   spanOf  `yaml:"plus"`
}

const maxPower = 6

func (p policyOf) check() string {
	switch {
	case p.Fixed != nil && (p.Power != 0 || p.Jitter != 0), p.Power != 0 && p.Jitter != 0:
		return "takes one of jitter, fixed and power"
	case p.Power < 0, p.Power > maxPower:
		return fmt.Sprintf("power is not from 1 to %d", maxPower)
	case p.Plus != 0 && p.Power == 0:
		return "plus goes with power"
	}
	return ""
}

// DelaySec is the wait after some attempts.
func (p policyOf) DelaySec(attempts int, _ int64) int64 {
	if p.Fixed != nil {
		return int64(time.Duration(*p.Fixed).Seconds())
	}
	const most = 100
	return int64(math.Pow(float64(min(attempts, most)), float64(p.Power)) + time.Duration(p.Plus).Seconds())
}

// sql is about the same in SQL, for a number of attempts and the setting's base, without
// jitter. It always has the base, which is a parameter.
func (p policyOf) sql(attempts, base string) string {
	switch {
	case p.Fixed != nil:
		return fmt.Sprintf("%s * 0 + %d", base, p.DelaySec(0, 0))
	case p.Power != 0:
		return fmt.Sprintf("%s * 0 + power(least(%s, 100)::float8, %d) + %d",
			base, attempts, p.Power, int64(time.Duration(p.Plus).Seconds()))
	}
	return fmt.Sprintf("%s * power(2, least(greatest(%s - 1, 0), 10)::float8)", base, attempts)
}
