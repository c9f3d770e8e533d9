package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A member that is listed again while its loop ends, and then is gone before it starts, is
// returned to be released. Otherwise its pool would stay open for good.
func TestMemberThatGoesBetweenTwoLoopsIsReleased(t *testing.T) {
	t.Parallel()
	m := Member{Name: "a", DB: noDB{}}
	l := &memberLoop{run: &run{loops: map[string]*memberLoop{}}, name: "a", next: &start{member: m}}
	l.take(t.Context())
	l.replace(nil)
	l.replace(&start{member: m})
	require.False(t, l.leaves(), "the member is the next one again")
	require.Equal(t, []Member{m}, l.replace(nil))
}

// A directory of members that hangs leaves CloseGates time for the members it knows.
func TestCloseGatesHasTimeForTheKnownMembersWhenTheListHangs(t *testing.T) {
	t.Parallel()
	hang := false
	f, err := New(Config{Members: func(ctx context.Context) ([]Member, error) {
		if hang {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []Member{{Name: "a", DB: noDB{}}}, nil
	}})
	require.NoError(t, err)
	_, err = f.list(t.Context())
	require.NoError(t, err)
	hang = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	outcomes, err := f.CloseGates(ctx, "operator")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, outcomes, 1)
	require.ErrorIs(t, outcomes[0].Err, errChecked, "the member's DB was asked")
}
