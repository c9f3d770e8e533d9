package loop

import (
	"slices"
	"time"
)

// mostServers is how many servers a loop remembers. A forgotten server counts as new.
const mostServers = 16

// Server is the database server that answered a poll.
type Server struct {
	Started time.Time // identifies the server, until its next restart
	Standby bool      // it is read-only
}

// servers has the servers that have answered, the latest at the end. Several servers may
// answer in turn under one address.
type servers []Server

// none reports whether no server has answered yet.
func (s servers) none() bool { return len(s) == 0 }

// meet remembers the server that answered, and reports whether workers may have had no
// server before: this one is a primary, is not the first to answer, and is new or was a
// standby when it answered last. Workers cannot use a standby.
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
