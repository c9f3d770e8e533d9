package suite

// Size is how much a run measures.
type Size struct {
	Rows    int // in the queue
	Stale   int // of those
	Batch   int // jobs in a batch
	Few     int // jobs in a small batch
	Many    int // jobs in a large batch
	Rounds  int // at most
	Calls   int // of what is over in a millisecond
	Warmups int // rounds before those that count
	Repeats int // queues, one after the other
	Fresh   int // the same, of small queues

	Batches  []int // sizes of a batch, for the plot
	Backlogs []int // stale rows, for the plot
}

// warmUp is how many jobs a warm-up reaps: few, for the backlog is for the
// rounds that count.
const warmUp = 100

// Full is the size that the goals are about.
var Full = Size{
	Rows: 1_000_000, Stale: 100_000, Batch: 1000, Few: 100, Many: 10_000,
	Rounds: 100, Calls: 1000, Warmups: 6, Repeats: 5, Fresh: 10,
	Batches:  []int{10, 30, 100, 300, 1000, 3000, 10_000},
	Backlogs: []int{1000, 10_000, 100_000, 1_000_000},
}

// Smoke takes seconds, and shows that each scenario works. Its figures mean
// nothing.
var Smoke = Size{
	Rows: 2000, Stale: 600, Batch: 20, Few: 10, Many: 60,
	Rounds: 3, Calls: 3, Warmups: 1, Repeats: 1, Fresh: 1,
	Batches:  []int{10, 20},
	Backlogs: []int{500, 2000},
}

// rounds is for how many rounds a backlog lasts.
func (s Size) rounds(limit, contenders int) int {
	left := s.Stale - s.Warmups*contenders*min(limit, warmUp)
	return min(s.Rounds, left/(limit*contenders))
}

// batches is how many batches one contender makes of a backlog.
func (s Size) batches() int { return s.Stale / s.Batch }
