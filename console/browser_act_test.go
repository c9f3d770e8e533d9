package console_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/gates"
)

// The console's first use: somebody looks, reviews a plan, and applies it.
func TestAPlanFromTheOverviewToTheApply(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	b := open(t, handler(t, shop(pool)))
	b.visit("/shop/overview")
	b.press(`.menu a[href$="jobs"]`)
	b.run(chromedp.SetValue("#limit", "10", chromedp.ByQuery))
	b.press("main form button")
	require.Equal(t, 10, eval[int](b, `document.querySelectorAll("input[name=job]").length`))
	b.run(chromedp.Click("input[name=job]", chromedp.ByQuery))
	b.press("#apply")
	require.Equal(t, "Applied", b.text("h1"))
	b.picture("applied")
	require.Equal(t, 51, one[int](t, pool, "select count(*) from job_queue where state = 'leased' and lease_until < now()"))
	require.Empty(t, b.complaints)
}

// The same for dead letters, without a script: an operator's browser may run none.
func TestARedriveWithoutAScript(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	b := open(t, handler(t, shop(pool)), emulation.SetScriptExecutionDisabled(true))
	b.visit("/shop/letters")
	b.run(chromedp.SendKeys("#kind", "charge_card", chromedp.ByQuery))
	b.press("form[action$=letters] button")
	b.press("form[action$=redrive] button")
	b.press("#redrive")
	require.Equal(t, "Redriven", b.text("h1"))
	b.picture("redriven")
	require.Equal(t, 15, one[int](t, pool, "select count(*) from job_dead_letter where redriven_by = 'alice'"))
	b.visit("/shop/gates")
	b.press(`[id="close-queue.lease.reaper_enabled"]`)
	require.Equal(t, "false", setting(t, pool, gates.ReaperEnabled))
	b.picture("gates-closed")
	b.visit("/shop/verify")
	b.press("#rehearse")
	require.Contains(t, b.text("main"), "rolled back")
}

// A person without a mouse must be able to close a gate.
func TestTheKeyboardAloneClosesAGate(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	b := open(t, handler(t, shop(pool)))
	b.visit("/shop/overview")
	press := func(key string) { b.run(chromedp.KeyEvent(key)) }
	follow := func() {
		_, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter))
		require.NoError(t, err)
	}
	reach := func(want string) {
		for range 60 {
			press(kb.Tab)
			if eval[bool](b, "document.activeElement.matches(`"+want+"`)") {
				require.NotEqual(t, "none", eval[string](b, "getComputedStyle(document.activeElement).outlineStyle"), "focus shows")
				return
			}
		}
		require.Fail(t, "the keyboard does not reach "+want)
	}
	reach(`.menu a[href$="gates"]`)
	follow()
	require.Equal(t, "Gates", b.text("h1"))
	reach(`[id="close-queue.lease.reaper_dry_run_only"]`)
	follow()
	require.Contains(t, b.text(".verdict"), "Applies are refused")
	require.Equal(t, "true", setting(t, pool, gates.DryRunOnly))
}

// A refresh that takes the focus, or what is being typed, is worse than none.
func TestARefreshKeepsFocusAndWhatIsTyped(t *testing.T) {
	t.Parallel()
	pool := filled(t)
	b := open(t, handler(t, shop(pool)))
	b.visit("/shop/gates")
	b.run(chromedp.SetValue("#duration", "45m", chromedp.ByQuery), chromedp.SendKeys("#word-window", "op", chromedp.ByQuery))
	eval[string](b, `getSelection().selectAllChildren(document.querySelector("h1")), getSelection().toString()`)
	eval[bool](b, `document.querySelector("#word-window").focus(), document.querySelector("#word-window").setSelectionRange(1, 2), true`)
	require.NoError(t, gates.Table{}.Set(t.Context(), pool, "carol", gates.ReaperEnabled, "false"))
	b.poll(`document.querySelector("main").textContent.includes("by carol")`)
	require.Equal(t, "word-window", eval[string](b, "document.activeElement.id"))
	require.Equal(t, 1, eval[int](b, `document.querySelector("#word-window").selectionStart`))
	require.Equal(t, "op", eval[string](b, `document.querySelector("#word-window").value`))
	require.Equal(t, "45m", eval[string](b, `document.querySelector("#duration").value`))

	b.run(chromedp.Click(".fresh button", chromedp.ByQuery))
	require.NoError(t, gates.Table{}.Set(t.Context(), pool, "dave", gates.ReaperEnabled, "true"))
	b.run(chromedp.Evaluate(`new Promise((done) => setTimeout(done, 4500))`, nil, awaited))
	require.NotContains(t, b.text("main"), "by dave", "it is paused")
	b.run(chromedp.Click(".fresh button", chromedp.ByQuery))
	b.poll(`document.querySelector("main").textContent.includes("by dave")`)
	require.Empty(t, b.complaints)
}

// A page that stays broken after the database is back would have to be reloaded by
// everybody.
func TestAPageComesBackByItself(t *testing.T) {
	t.Parallel()
	pool, away := switched(t, filled(t))
	b := open(t, handler(t, of(console.Database{Name: "shop", Look: pool})))
	b.visit("/shop/overview")
	away.Store(true)
	b.poll(`document.querySelector("#trouble") !== null`)
	b.picture("away")
	away.Store(false)
	b.poll(`document.querySelector("#trouble") === null`)

	away.Store(true)
	b.visit("/shop/jobs")
	b.visit("/shop/letters")
	require.Contains(t, b.text("main"), "does not answer")
	away.Store(false)
	b.poll(`document.querySelector("h1").textContent === "Dead letters"`)
}

// Ten people look at the same page: the database is asked once a second at most.
func TestTenTabsAreOneReadASecond(t *testing.T) {
	t.Parallel()
	pool, sent := traced(t, filled(t))
	server := httptest.NewServer(handler(t, shop(pool)))
	t.Cleanup(server.Close)
	first := openAt(t, server.URL)
	tabs := []*tab{first}
	for range 9 {
		ctx, cancel := chromedp.NewContext(first.ctx)
		t.Cleanup(cancel)
		tabs = append(tabs, &tab{t: t, ctx: ctx, root: server.URL})
	}
	for _, b := range tabs {
		b.visit("/shop/overview")
	}
	began, before := time.Now(), sent.count(readBegins)
	first.run(chromedp.Evaluate(`new Promise((done) => setTimeout(done, 6000))`, nil, awaited))
	reads := sent.count(readBegins) - before
	require.LessOrEqual(t, reads, int(time.Since(began).Seconds())+1)
	require.Positive(t, reads)
}

// axe is the text of axe-core, which is installed outside of the tree: in the folder
// that AXE names, or in a temporary one.
func axe(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("AXE")
	if folder == "" {
		folder = t.TempDir()
		npm := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder, "axe-core@4")
		output, err := npm.CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	text, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	return string(text)
}

// A person with a screen reader, or with weak eyes, is on call too.
func TestPagesHaveNoSeriousAccessibilityFault(t *testing.T) {
	t.Parallel()
	cfg := crowded(t)
	h, script := handler(t, cfg), axe(t)
	pages := append(slices.Clone(lookPages), "/shop/history", "/shop/letter?id="+aLetter(t, cfg),
		"/shop/purge?unredriven=yes&older=1h", "/shop/nowhere", "/billing/gates")
	for scheme, width := range map[string]int64{"light": 1280, "dark": 390} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			b := open(t, h, theme(scheme), chromedp.EmulateViewport(width, 900))
			for _, page := range pages {
				b.visit(page)
				b.run(chromedp.Evaluate(script, nil))
				found := eval[[]string](b, `axe.run().then((r) => r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
					.map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" ")))`)
				require.Empty(t, found, "%s at %d", page, width)
			}
		})
	}
}
