package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/console"
)

// The console is mounted like any handler. Access asks whatever knows who is signed in.
func ExampleNew() {
	pool, err := pgxpool.New(context.Background(), "postgres://localhost/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	handler, err := console.New(console.Config{
		Databases: []console.Database{{Name: "shop", Colour: "teal", Look: pool, Act: pool}},
		Access: func(r *http.Request) (string, console.Level, error) {
			actor := r.Header.Get("X-Forwarded-User") // set by the proxy, which removes what others send
			if actor == "" {
				return "", console.LevelNone, errors.New("nobody is signed in")
			}
			return actor, console.LevelAct, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/leases/", http.StripPrefix("/ops/leases", handler))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/ops/leases/", http.NoBody))
	fmt.Println(answer.Code)
	// Output: 401
}
