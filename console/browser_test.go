package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browsers bounds how many run at once.
var browsers = make(chan struct{}, 2)

// start starts a Chromium that ends with the test.
func start(t testing.TB) context.Context {
	t.Helper()
	program, err := chromium()
	require.NoError(t, err, "the tests need Debian's chromium, or CHROMIUM with the path of one")
	browsers <- struct{}{}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	allocated, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until it has ended
		cancel()
		stop()
		<-browsers
	})
	require.NoError(t, chromedp.Run(ctx))
	return ctx
}

func chromium() (string, error) {
	if program := os.Getenv("CHROMIUM"); program != "" {
		return program, nil
	}
	return exec.LookPath("chromium")
}

// tab is a page in the browser, with what it complained about.
type tab struct {
	t    testing.TB
	ctx  context.Context
	root string // where the console is mounted

	mu         sync.Mutex
	complaints []string // of the policy, scripts, and answers that failed
	hosts      map[string]bool
}

// open mounts a console under a prefix, and opens a tab.
func open(t testing.TB, h http.Handler, options ...chromedp.Action) *tab {
	t.Helper()
	const prefix = "/ops/leases"
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return openAt(t, server.URL+prefix, options...)
}

// openAt opens a tab for a console that is served already.
func openAt(t testing.TB, root string, options ...chromedp.Action) *tab {
	t.Helper()
	ctx, stop := context.WithTimeout(start(t), 2*time.Minute)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, root: root, hosts: map[string]bool{}}
	chromedp.ListenTarget(ctx, b.listen)
	b.run(append([]chromedp.Action{network.Enable(), log.Enable(), chromedp.EmulateViewport(1280, 900)}, options...)...)
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		host := strings.TrimPrefix(e.Request.URL, "http://")
		host, _, _ = strings.Cut(host, "/")
		b.hosts[host] = true
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, e.Entry.Text+" "+e.Entry.URL)
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Error())
	}
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// visit goes to a page of the console.
func (b *tab) visit(page string) { b.t.Helper(); b.run(chromedp.Navigate(b.root + page)) }

// press submits a form and waits for the page that answers.
func (b *tab) press(selector string) {
	b.t.Helper()
	_, err := chromedp.RunResponse(b.ctx, chromedp.Click(selector, chromedp.ByQuery))
	require.NoError(b.t, err, selector)
}

// text is what an element says.
func (b *tab) text(selector string) string {
	b.t.Helper()
	var text string
	b.run(chromedp.Text(selector, &text, chromedp.ByQuery))
	return text
}

// eval evaluates JavaScript.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	var value T
	b.run(chromedp.Evaluate(script, &value, awaited))
	return value
}

// awaited waits for what a script promises.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// poll waits until a script is true.
func (b *tab) poll(script string) {
	b.t.Helper()
	b.run(chromedp.Poll(script, nil, chromedp.WithPollingTimeout(30*time.Second)))
}

// theme is the colour scheme that the reader prefers.
func theme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// picture keeps a screenshot for people in the folder that SCREENSHOTS names.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	var image []byte
	b.run(chromedp.FullScreenshot(&image, 100))
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), image, 0o600))
}
