package reaper

import (
	"errors"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// isUnreachable tells an error of the connection from one of the caller's code or
// the server's.
func isUnreachable(err error) bool {
	var hook *hookError
	var mover *moverError
	var source *sourceError
	if pgtx.Code(err) == "" && (errors.As(err, &hook) || errors.As(err, &mover) || errors.As(err, &source)) {
		return false
	}
	return errors.Is(err, ErrOutcomeUnknown) || pgtx.IsUnreachable(err)
}
