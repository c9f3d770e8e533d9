package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// checkActor reports that nobody would be known to have made a change.
func (t *tool) checkActor() error {
	if strings.TrimSpace(t.actor) == "" {
		return misused("--actor is empty: a change is made in somebody's name")
	}
	return nil
}

// checkYes reports that nobody has said yes and nobody can be asked.
func (t *tool) checkYes() error {
	if t.yes || isTerminal(t.in) {
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
	fmt.Fprintf(t.errs, "%s As %s. [y/N] ", question, clean(t.actor))
	answer, err := t.answer(ctx)
	if err != nil {
		fmt.Fprintln(t.errs)
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
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
