// Package river maps.
package river
