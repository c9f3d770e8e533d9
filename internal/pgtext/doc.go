// Package pgtext turns names and state labels into SQL text, quoted, and lists
// into the text of an array, for a parameter.
//
// It is the one place where anything but a constant becomes part of a
// statement. Everything else reaches PostgreSQL as a parameter.
package pgtext
