// Package pgboss maps.
package pgboss
