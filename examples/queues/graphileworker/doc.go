// Package graphileworker maps.
package graphileworker
