package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"licet/loadtest/rig"
)

// settings are what a program's command line says, in these tests.
type settings struct {
	Options
	rounds int
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{Options: Options{Members: 3, Nodes: 1}}
	flags := s.NewFlags("quiz", stderr, "what is asked", "")
	flags.IntVar(&s.rounds, "rounds", 3, "how many rounds there are")
	if err := s.Parse(flags, args); err != nil {
		return nil, err
	}
	if s.rounds < 1 {
		return nil, fmt.Errorf("--rounds is %d: it must be from 1 to 7", s.rounds)
	}
	return s, s.Check(s.rounds)
}

func TestExitCodes(t *testing.T) {
	sound := func(_ context.Context, s *settings, progress *rig.Progress) (*Report, error) {
		progress.Step("rounds: %d", s.rounds)
		return &Report{Seed: s.Seed, Proven: "everybody knows everything"}, nil
	}
	for _, c := range []struct {
		name   string
		args   []string
		run    func(context.Context, *settings, *rig.Progress) (*Report, error)
		code   int
		stdout string // some of it; empty: nothing
		stderr string
	}{
		{"nothing is wrong", []string{"--seed", "7", "--rounds", "4"}, sound, rig.ExitOK,
			"seed 7, 0s: everybody knows everything\n", "rounds: 4"},
		{"something is wrong", nil, func(context.Context, *settings, *rig.Progress) (*Report, error) {
			return &Report{Proven: "all questions were answered", Problems: []string{"one answer"}}, nil
		}, rig.ExitFailed, "WRONG: one answer\n\nseed 0, 0s: WRONG: 1\n", ""},
		{"it can't be carried through", nil, func(context.Context, *settings, *rig.Progress) (*Report, error) {
			return nil, errors.New("no candidate")
		}, rig.ExitFailed, "", "quiz: FAILED: no candidate\n"},
		{"help", []string{"--help"}, nil, rig.ExitOK, "", "--rounds"},
		{"a flag of its own", []string{"--rounds", "0"}, nil, rig.ExitUsage, "",
			"quiz: --rounds is 0: it must be from 1 to 7\n"},
		{"no number", []string{"--rounds", "many"}, nil, rig.ExitUsage, "", "--rounds"},
		{"a flag of all", []string{"--members", "0"}, nil, rig.ExitUsage, "",
			"quiz: --members is 0: it must be from 1 to 7\n"},
		{"no flag", []string{"now"}, nil, rig.ExitUsage, "", "quiz: unexpected argument \"now\"\n"},
		{"an unknown flag", []string{"--now"}, nil, rig.ExitUsage, "", "--now"},
	} {
		var stdout, stderr bytes.Buffer
		p := &Program[*settings]{Name: "quiz", Parse: parse, Run: c.run}
		code := p.Command(t.Context(), c.args, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.stdout) || (c.stdout == "") != (stdout.Len() == 0) ||
			!strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%s: exit code %d\n%s\n%s", c.name, code, &stdout, &stderr)
		}
	}
}

// full is a disk that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestReportThatIsNotPrintedIsAFailure(t *testing.T) {
	p := &Program[*settings]{Name: "quiz", Parse: parse,
		Run: func(context.Context, *settings, *rig.Progress) (*Report, error) {
			return &Report{}, nil
		}}
	var stderr bytes.Buffer
	if code := p.Command(t.Context(), nil, full{}, &stderr); code != rig.ExitFailed ||
		!strings.Contains(stderr.String(), "quiz: no space left") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}
