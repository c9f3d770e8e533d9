package loop

import (
	"slices"
	"time"
)

// mostServers is how many servers a loop tells apart. One that it has forgotten
// counts as new.
const mostServers = 16

// Server is the database server that answered a poll.
type Server struct {
	Started time.Time // tells it from others, and from itself before a restart
	Standby bool      // it takes no writes
}

// servers are those that have answered, the last one at the end. Behind one
// address there may be several that answer in turn.
type servers []Server

// none reports whether no server has answered yet.
func (s servers) none() bool { return len(s) == 0 }

// meet remembers the server that answered, and reports whether the workers may
// have had none before: it takes writes, and is not the first to answer, and is
// new or was a standby when it answered last. A standby is none to them.
func (s *servers) meet(server Server) (again bool) {
	first := s.none()
	i := slices.IndexFunc(*s, func(known Server) bool { return known.Started.Equal(server.Started) })
	switch {
	case i >= 0:
		again = (*s)[i].Standby && !server.Standby
		*s = slices.Delete(*s, i, i+1)
	case len(*s) == mostServers:
		again = !server.Standby
		*s = slices.Delete(*s, 0, 1)
	default:
		again = !first && !server.Standby
	}
	*s = append(*s, server)
	return again
}
