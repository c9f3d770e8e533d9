package main

import (
	"errors"
	"net"
	"net/http"

	"github.com/lease-governance/leasereaper/console"
)

var errNotLocal = errors.New("--console-actor lets everybody act who reaches it: it needs --listen on loopback")

// access says who may do what in the console. By default everybody may look and nobody
// may act. The name of --console-actor acts for everybody on this machine. In a service of
// your own, ask whatever knows who is signed in.
func (o *options) access() func(*http.Request) (string, console.Level, error) {
	if o.consoleActor == "" {
		return nil
	}
	return func(r *http.Request) (string, console.Level, error) {
		if !isLocal(r.Host) { // a name that somebody else made an alias of this machine
			return "", console.LevelNone, errNotLocal
		}
		return o.consoleActor, console.LevelGates, nil
	}
}

// isLocal reports whether an address with a port is on loopback.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
