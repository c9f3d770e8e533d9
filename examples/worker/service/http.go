package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	requestTimeout  = 10 * time.Second
	answerTimeout   = 30 * time.Second // the console's reads alone may take 10 s
	shutdownTimeout = 2 * time.Second
)

// server serves /metrics, /healthz, /readyz and the console. ctx ends when the service is
// being stopped.
func (s *Service) server(ctx context.Context) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.Registry(), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", healthz)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { s.readyz(ctx, w, r) })
	if s.console != nil {
		mux.Handle(consolePath+"/", s.console)
	}
	return &http.Server{Handler: mux, ReadHeaderTimeout: requestTimeout, WriteTimeout: answerTimeout}
}

// healthz says that the process answers, and no more: if it asked the database, an
// outage of that would have every worker restarted.
func healthz(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") }

// readyz says whether this worker can do jobs.
func (s *Service) readyz(stopping context.Context, w http.ResponseWriter, r *http.Request) {
	if stopping.Err() != nil {
		answer(w, http.StatusServiceUnavailable, "stopping")
		return
	}
	if reason := s.ready.check(r.Context()); reason != "" {
		answer(w, http.StatusServiceUnavailable, reason)
		return
	}
	answer(w, http.StatusOK, "ok")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// serve serves until the server is shut down.
func serve(server *http.Server, listener net.Listener, fail context.CancelCauseFunc) {
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		fail(fmt.Errorf("service: serve: %w", err))
	}
}

// shutdown lets a scrape that is under way come to its end.
func shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("service: shut down: %w", err), server.Close())
	}
	return nil
}
