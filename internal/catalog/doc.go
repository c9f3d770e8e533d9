// Package catalog reads what PostgreSQL knows of a table: its columns and their
// types, its keys and policies, and what the current role may do with it.
//
// It reads the system catalogs alone, locks nothing and needs no privilege. What
// it returns is for one moment.
package catalog
