package console

import (
	"net/http"

	"github.com/lease-governance/leasereaper/deadletter"
)

// menuEntry is a link in the menu.
type menuEntry struct{ Page, Title string }

// menu lists the pages of a database.
func menu(v view) []menuEntry {
	entries := []menuEntry{{"overview", "Overview"}, {"jobs", "Jobs"}, {"gates", "Gates"}}
	if v.DB.HasLetters() {
		entries = append(entries, menuEntry{"letters", "Dead letters"})
	}
	entries = append(entries, menuEntry{"verify", "Verify"})
	if v.DB.HasHistory() {
		entries = append(entries, menuEntry{"history", "History"})
	}
	return entries
}

// menuPage is the entry of the menu that a page belongs to.
func menuPage(v view) string {
	switch v.Page {
	case "plan", "applied":
		return "jobs"
	case "letter", "redrive", "redriven", "purge", "purged":
		return "letters"
	case "failure", "":
		return "overview"
	}
	return v.Page
}

// tableData is what the table of dead letters shows.
type tableData struct {
	DB      *database
	Letters []deadletter.Letter
	Base    string
	Tick    bool // with boxes to tick
}

// filterData is what the form of a filter shows.
type filterData struct {
	DB     *database
	Filter filterForm
}

// tallyData is what a table of tallies shows.
type tallyData struct {
	Title, What string
	List        []tally
}

// talliesShown is how many lines such a table has.
const talliesShown = 10

func tallyOf(title, what string, list []tally) tallyData {
	return tallyData{title, what, list[:min(len(list), talliesShown)]}
}

// passesShown is how many passes the table shows.
const passesShown = 5

func firstPasses(passes []pass) []pass { return passes[:min(len(passes), passesShown)] }

// Title says in a word or two what went wrong.
func (f *failure) Title() string { return http.StatusText(f.status) }

// Whole is in how many whole seconds a lease expires.
func (e expiry) Whole() int64 { return int64(e.Seconds) }

// jsonLink is the address of a page's JSON.
func jsonLink(v view) string { return v.Base + v.Page + ".json" + v.JSON }
