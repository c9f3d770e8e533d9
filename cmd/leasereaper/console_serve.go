package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/lease-governance/leasereaper/console"
)

// Bounds of the server.
const (
	headerTimeout = 10 * time.Second // for a request's header
	goodbye       = 5 * time.Second  // for requests under way when it ends
)

// serve answers requests until the context ends.
func (c *consoling) serve(ctx context.Context, handler http.Handler, level console.Level) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return err
	}
	if isLoopback(listener.Addr()) {
		handler = onlyLoopback(handler)
	} else {
		c.warn(level)
	}
	fmt.Fprintf(c.out, "console on http://%s, level %s; Ctrl-C ends it\n", listener.Addr(), level)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		ended <- server.Shutdown(bounded)
	})
	err = server.Serve(listener)
	if stop() { // it was not the context
		return err
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}

// warn says what a console that others can reach allows.
func (c *consoling) warn(level console.Level) {
	may := "look"
	if level > console.LevelLook {
		may = "change tables, as " + clean(c.actor)
	}
	fmt.Fprintf(c.errs, "WARNING: there is no sign-in, and whoever reaches %s may %s\n", clean(c.listen), may)
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// onlyLoopback answers requests for names of this machine alone. A page of another site
// can give its own name the address 127.0.0.1; the browser would then let it read the
// console and send its forms.
func onlyLoopback(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this console answers on localhost alone", http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
