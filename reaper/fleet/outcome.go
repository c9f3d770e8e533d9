package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
)

// Outcome is what a call came to for one member. Its JSON has the error's text, and can be
// read back; then Err has that text alone.
type Outcome[T any] struct {
	Member string // the member's name
	Result *T     // nil after an error, unless the method returns what it has done until then
	Err    error  // a panic is an error
}

// outcomeJSON is the JSON of an Outcome.
type outcomeJSON[T any] struct {
	Member string  `json:"member"`
	Result *T      `json:"result,omitempty"`
	Error  *string `json:"error,omitempty"`
}

// MarshalJSON leaves out what there is not.
func (o Outcome[T]) MarshalJSON() ([]byte, error) {
	shown := outcomeJSON[T]{Member: o.Member, Result: o.Result}
	if o.Err != nil {
		text := o.Err.Error()
		shown.Error = &text
	}
	return json.Marshal(shown)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *Outcome[T]) UnmarshalJSON(data []byte) error {
	var shown outcomeJSON[T]
	if err := json.Unmarshal(data, &shown); err != nil {
		return err
	}
	*o = Outcome[T]{Member: shown.Member, Result: shown.Result}
	if shown.Error != nil {
		o.Err = errors.New(*shown.Error)
	}
	return nil
}

// each calls call for each member, for at most parallel of them at once, and returns the
// outcomes in the members' order.
func each[T any](
	ctx context.Context, members []Member, parallel int, call func(context.Context, Member) (*T, error),
) []Outcome[T] {
	outcomes := make([]Outcome[T], len(members))
	var begun atomic.Int64
	var group sync.WaitGroup
	for range min(parallel, len(members)) {
		group.Go(func() {
			for i := begun.Add(1) - 1; i < int64(len(members)); i = begun.Add(1) - 1 {
				outcomes[i] = outcomeOf(ctx, members[i], call)
			}
		})
	}
	group.Wait()
	return outcomes
}

// outcomeOf calls call for a member, unless ctx has ended before.
func outcomeOf[T any](
	ctx context.Context, m Member, call func(context.Context, Member) (*T, error),
) Outcome[T] {
	outcome := Outcome[T]{Member: m.Name}
	if ctx.Err() != nil {
		outcome.Err = context.Cause(ctx)
		return outcome
	}
	outcome.Err = recoverPanic(func() (err error) {
		outcome.Result, err = call(ctx, m)
		return err
	})
	return outcome
}
