// Package pgtext turns names and state labels into SQL text, quoted, and lists
// into the text of an array, for a parameter.
//
// Only here does anything but a constant become part of a statement. Everything else
// reaches PostgreSQL as a parameter.
package pgtext
