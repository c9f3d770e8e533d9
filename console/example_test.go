package console_test

import (
	"errors"
	"log"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/console"
)

// The console is mounted like any handler. Access asks whatever knows who is signed in.
func ExampleNew() {
	var look, act *pgxpool.Pool // two roles on the same database
	handler, err := console.New(console.Config{
		Databases: []console.Database{{Name: "shop", Colour: "teal", Look: look, Act: act}},
		Access: func(r *http.Request) (string, console.Level, error) {
			actor := r.Header.Get("X-Forwarded-User") // set by the proxy, which removes what others send
			if actor == "" {
				return "", console.LevelNone, errors.New("nobody is signed in")
			}
			return actor, console.LevelAct, nil
		},
	})
	if err != nil {
		log.Print(err)
		return
	}
	http.Handle("/ops/leases/", http.StripPrefix("/ops/leases", handler))
}
