package console

import (
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
)

// files are the templates, the stylesheet, the script and the icon.
//
//go:embed templates/*.html static/*
var files embed.FS

// console holds what the handlers share.
type console struct {
	cfg     Config
	log     *slog.Logger
	listing *listing
	pages   map[string]*template.Template
	mux     *http.ServeMux
}

// New makes the console. It does no I/O, so a database that is away shows on the
// pages. Its error holds every fault of cfg at once.
func New(cfg Config) (http.Handler, error) {
	if cfg.Fresh == 0 {
		cfg.Fresh = defaultFresh
	}
	c := &console{cfg: cfg, log: cfg.Logger}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	faults := []error{cfg.check()}
	var databases []*database
	for _, d := range cfg.Databases {
		if d.Look == nil {
			continue
		}
		db, err := newDatabase(d, cfg.Fresh, c.log)
		faults = append(faults, err)
		databases = append(databases, db)
	}
	c.listing = &listing{
		fixed: databases, members: cfg.Members, fresh: cfg.Fresh, log: c.log, current: knownOf(databases),
	}
	protect := http.NewCrossOriginProtection()
	for _, origin := range cfg.TrustedOrigins {
		faults = append(faults, protect.AddTrustedOrigin(origin))
	}
	var err error
	c.pages, err = parsePages()
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	protect.SetDenyHandler(http.HandlerFunc(c.denyForged))
	c.mux = c.routes()
	routes := tidy(c.mux, c.handle(route{LevelLook, c.missing}))
	return headers(dotJSON(protect.Handler(routes))), nil
}

// routes are relative to wherever the console is mounted.
func (c *console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, route := range map[string]route{
		"GET /{db}/overview":      {LevelLook, c.overview},
		"GET /{db}/jobs":          {LevelLook, c.jobs},
		"GET /{db}/plan":          {LevelLook, c.plan},
		"POST /{db}/plan":         {LevelAct, c.applyPlan},
		"GET /{db}/gates":         {LevelLook, c.gates},
		"POST /{db}/gates/close":  {LevelAct, c.closeGate},
		"POST /{db}/gates/open":   {LevelGates, c.openGate},
		"POST /{db}/window/close": {LevelAct, c.closeWindow},
		"POST /{db}/window/open":  {LevelGates, c.openWindow},
		"GET /{db}/letters":       {LevelLook, c.letters},
		"GET /{db}/letter":        {LevelLook, c.letter},
		"GET /{db}/redrive":       {LevelLook, c.previewRedrive},
		"POST /{db}/redrive":      {LevelAct, c.redrive},
		"GET /{db}/purge":         {LevelLook, c.previewPurge},
		"POST /{db}/purge":        {LevelAct, c.purge},
		"GET /{db}/verify":        {LevelLook, c.verify},
		"POST /{db}/rehearse":     {LevelAct, c.rehearse},
		"GET /{db}/history":       {LevelLook, c.history},
	} {
		mux.Handle(pattern, c.handle(route))
	}
	home := c.handle(route{LevelLook, c.home})
	mux.Handle("GET /{$}", home)
	mux.Handle("GET /{db}", home)
	mux.Handle("GET /{db}/{$}", home)
	for file := range statics {
		mux.HandleFunc("GET /static/"+file, static)
	}
	mux.Handle("/", c.handle(route{LevelLook, c.unknown}))
	return mux
}
