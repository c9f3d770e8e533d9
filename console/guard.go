package console

import (
	"context"
	"net/http"
	"path"
	"strings"
)

// policy lets a page load what the console itself serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// headers sets what holds for every answer.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Add("Vary", "Accept")
		if r.URL.Path == "" {
			noSlash(w, r)
			return
		}
		limited := *r
		if r.Body != nil {
			limited.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		next.ServeHTTP(w, &limited)
	})
}

// maxBody is more than a form with the largest plan takes.
const maxBody = 4 << 20

// noSlash sends a request for the prefix itself to the folder that it means. The
// prefix is not known here, but its last part is.
func noSlash(w http.ResponseWriter, r *http.Request) {
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	folder := strings.TrimPrefix(path.Base("/"+asked)+"/", "/") // "//" would be a host
	w.Header().Set("Location", "./"+strings.TrimPrefix(folder, "/"))
	w.WriteHeader(http.StatusSeeOther)
}

type jsonKey struct{}

// dotJSON takes .json off the path, and remembers it.
func dotJSON(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut, ok := strings.CutSuffix(r.URL.Path, ".json"); ok {
			r = r.Clone(context.WithValue(r.Context(), jsonKey{}, true))
			r.URL.Path, r.URL.RawPath = cut, ""
		}
		next.ServeHTTP(w, r)
	})
}

// wantsJSON is true for a path that ends in .json, and for an Accept header that names
// JSON and no HTML.
func wantsJSON(r *http.Request) bool {
	if r.Context().Value(jsonKey{}) != nil {
		return true
	}
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// statics are the types of the files that the console serves as they are.
var statics = map[string]string{
	"style.css": "text/css; charset=utf-8", "script.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
}

// static serves the stylesheet, the script and the icon.
func static(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	text, _ := files.ReadFile("static/" + name) // it is embedded
	w.Header().Set("Content-Type", statics[name])
	_, _ = w.Write(text) // the reader may have gone
}

// tidy answers a path with empty or dotted parts itself. A ServeMux would redirect it to
// an address from the host's root, which does not know the prefix.
func tidy(next, unknown http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
			unknown.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// denyForged answers a request that another site's page has sent.
func (c *console) denyForged(w http.ResponseWriter, r *http.Request) {
	c.log.Warn("console refused a request from another origin")
	c.answerFailure(w, &request{Request: r}, &failure{status: http.StatusForbidden, Text: "This request came " +
		"from another site's page. Nothing was changed. " +
		"If a proxy stands before the console, its origin must be in TrustedOrigins."})
}
