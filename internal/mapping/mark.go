package mapping

// MarksMoved reports whether a moved job's row can be told from a free one: by its
// state, or by a column that a move gives a value which free rows do not have.
func (q Queue) MarksMoved() bool {
	for column := range q.OnMove {
		if q.Marks(column) {
			return true
		}
	}
	return q.State != ""
}

// Unmarks reports whether a redrive leaves a row that is not a dead job's any more.
func (q Queue) Unmarks() bool { return q.isUnmarkedBy(q.requeued()) }

// isUnmarkedBy reports whether what a redrive writes undoes a mark.
func (q Queue) isUnmarkedBy(requeue map[string]any) bool {
	if q.Marks(q.ScheduledAt) { // a redrive writes it
		return true
	}
	for column, moved := range q.OnMove {
		requeued, written := requeue[column]
		if moved != Keep && written && !isMet(moved, requeued) {
			return true
		}
	}
	return q.State != ""
}

// Marks reports whether what a move writes to a column tells a moved row. NULL does not,
// as any row may have it; nor does what a reset writes, or what Only asks of all rows.
func (q Queue) Marks(column string) bool {
	moved := q.OnMove[column]
	reset, isReset := q.OnReset[column]
	only, isOnly := q.Only[column]
	switch {
	case moved == nil, moved == Keep:
		return false
	case isReset && isMet(moved, reset), isOnly && isMet(moved, only):
		return false
	case column == q.Attempts, column == q.LostLeases:
		return false
	case moved == Now:
		return column != q.ScheduledAt // free rows have a time there
	}
	return true
}

// isMet reports whether a column that holds a value meets the condition of another. That of
// Now is met by all but NULL.
func isMet(condition, value any) bool {
	if condition == Now {
		return value != nil
	}
	var b builder
	want, _ := b.literal(condition)
	got, _ := b.literal(value)
	return want == got
}
