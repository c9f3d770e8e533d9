package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
)

// checkActor reports that nobody would be known to have made a change.
func (t *tool) checkActor() error {
	if strings.TrimSpace(t.actor) == "" {
		return misused("--actor is empty: a change is made in somebody's name")
	}
	return nil
}

// checkYes reports that nobody has said yes and nobody can be asked, or that a yes is not
// enough: a production database takes its name.
func (t *tool) checkYes() error {
	named := slices.Contains(t.confirmed, t.queue.name)
	switch {
	case len(t.confirmed) > 0 && !named:
		return misused("--confirm names %s, and this would change %q", strings.Join(t.confirmed, ", "), t.queue.name)
	case t.yes && t.queue.production && !named:
		return misused("%s is a production database: --yes alone does not change it; add --confirm %[1]s", t.queue.name)
	case t.yes || isTerminal(t.in):
		return nil
	}
	return misused("this changes tables and there is no terminal to ask on: say --yes")
}

// confirm asks a question, unless --yes was the answer to all of them. The
// dialogue is on stderr, so that stdout has the result alone.
func (t *tool) confirm(ctx context.Context, question string) error {
	if t.yes {
		return nil
	}
	fmt.Fprintf(t.errs, "%s As %s%s ", question, clean(t.actor), t.choices())
	answer, err := t.answer(ctx)
	if err != nil {
		fmt.Fprintln(t.errs)
		return err
	}
	if t.isYes(strings.TrimSpace(answer)) {
		return nil
	}
	return errDeclined
}

// choices ends a question.
func (t *tool) choices() string {
	switch {
	case t.queue.production:
		return fmt.Sprintf(", in production. Type %s to go on:", t.queue.name)
	case t.queue.name != "":
		return fmt.Sprintf(", in %s. [y/N]", t.queue.name)
	}
	return ". [y/N]"
}

func (t *tool) isYes(answer string) bool {
	if t.queue.production {
		return answer == t.queue.name
	}
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// answer reads a line. The end of the input is no answer.
func (t *tool) answer(ctx context.Context) (string, error) {
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(t.in).ReadString('\n') // what was read counts
		lines <- line
	}()
	select {
	case line := <-lines:
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
