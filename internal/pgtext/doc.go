// Package pgtext quotes names and state labels for SQL, and writes lists as the text of an
// array parameter.
//
// Names and labels from this package are the only variable parts of a statement. All other
// values reach PostgreSQL as parameters.
package pgtext
