package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// functions are what templates may call.
func functions() template.FuncMap {
	return template.FuncMap{
		"span": span, "stamp": stamp, "ago": ago, "number": number, "orNone": orNone, "would": would,
		"meaning": meaning, "gateWord": gateWord, "plural": plural, "bar": bar, "expiryChart": expiryChart,
		"passChart": passChart, "firstExpiries": firstExpiries, "firstPasses": firstPasses, "failedReads": failedReads,
		"menu": menu, "menuPage": menuPage, "tallyOf": tallyOf, "jsonLink": jsonLink,
		"deref": func(b *bool) bool { return b != nil && *b },
		"table": func(v view, letters []deadletter.Letter, tick bool) tableData {
			return tableData{v.DB, letters, v.Base, tick}
		},
		"filterOf": func(v view, filter filterForm) filterData { return filterData{v.DB, filter} },
		"clip":     clip, "instant": instant,
	}
}

// parsePages makes a set of templates a page: the layout, the shared parts and the
// page's own main part.
func parsePages() (map[string]*template.Template, error) {
	base, err := template.New("").Funcs(functions()).ParseFS(files, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	list, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, file := range list {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		page, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if pages[name], err = page.ParseFS(files, file); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// span says how long something is, in its two largest units.
func span(seconds int64) string {
	if seconds == math.MaxInt64 {
		return "for ever"
	}
	const minute, hour, day = 60, 3600, 86400
	seconds = max(seconds, 0)
	switch {
	case seconds < minute:
		return fmt.Sprintf("%d s", seconds)
	case seconds < hour:
		return fmt.Sprintf("%d min %d s", seconds/minute, seconds%minute)
	case seconds < day:
		return fmt.Sprintf("%d h %d min", seconds/hour, seconds%hour/minute)
	}
	return fmt.Sprintf("%d d %d h", seconds/day, seconds%day/hour)
}

// stamp writes a time, which is in UTC on all pages. It is made of digits alone.
func stamp(t any) template.HTML {
	at, ok := moment(t)
	switch {
	case !ok, at.Equal(noTime):
		return "–"
	case at.Equal(reaper.NegativeInfinity()):
		return "-infinity"
	}
	at = at.UTC()
	return template.HTML(`<time datetime="` + at.Format(time.RFC3339) + `">` +
		at.Format("2006-01-02 15:04:05") + `</time>`)
}

// noTime is the time of a letter in place that has none.
var noTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)

// instant writes a time that is a text because it may be infinite.
func instant(text *string) template.HTML {
	if text == nil {
		return stamp(nil)
	}
	if at, err := time.Parse(time.RFC3339, *text); err == nil {
		return stamp(at)
	}
	return template.HTML(template.HTMLEscapeString(*text)) //nolint:gosec // escaped
}

// clip cuts a text that is too long for a line of a table.
func clip(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

func moment(t any) (time.Time, bool) {
	switch at := t.(type) {
	case time.Time:
		return at, true
	case *time.Time:
		if at != nil {
			return *at, true
		}
	}
	return time.Time{}, false
}

// ago says how long before now something was.
func ago(now time.Time, t any) string {
	at, ok := moment(t)
	if !ok {
		return "–"
	}
	return span(int64(now.Sub(at).Seconds())) + " ago"
}

// number writes thousands apart.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// orNone shows an empty text, or one that is not there, as such.
func orNone(text any) string {
	switch t := text.(type) {
	case string:
		if t != "" {
			return t
		}
	case *string:
		if t != nil && *t != "" {
			return *t
		}
	case *int64:
		if t != nil {
			return strconv.FormatInt(*t, 10)
		}
	}
	return "–"
}

// plural counts things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

func indent(document []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, document, "", "  "); err != nil {
		return string(document)
	}
	return b.String()
}

// failedReads says since when reads have failed, and how old the page is.
func failedReads(t *trouble, now time.Time) string {
	text := fmt.Sprintf("This has been so since %s UTC, for %s.",
		t.Since.UTC().Format(time.TimeOnly), span(int64(now.Sub(t.Since).Seconds())))
	if t.Seen.IsZero() {
		return text + " There is nothing older to show."
	}
	return text + fmt.Sprintf(" What is shown is %s old.", span(int64(now.Sub(t.Seen).Seconds())))
}
