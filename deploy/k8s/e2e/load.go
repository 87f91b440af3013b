package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// load is a scenario of loadtest, which k6 sends to the Service.
type load struct {
	scenario string
	rate     int
	lasts    time.Duration
}

// under puts a load on the Service, and calls do meanwhile. The load fails if k6 misses a threshold of the scenario, or
// if an acknowledged result is lost. Answers may take longer than on an idle machine.
func (r *run1) under(ctx context.Context, l load, do func(context.Context) error) error {
	key, err := r.variable("LICET_API_KEY")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := filepath.Join(r.logs, "load-"+l.scenario)
	log, err := os.Create(out + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := r.control.onNetwork(ctx, r.tools.load, "--scenario", l.scenario, "--rate", fmt.Sprint(l.rate), "--duration",
		l.lasts.String(), "--target", address, "--k6", r.tools.k6, "--slack", "20", "--out", out)
	cmd.Dir = r.cfg.root
	cmd.Env = append(os.Environ(), "LICET_API_KEY="+key)
	ownSession(cmd)
	cmd.Stdout = log
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	begun := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		watch(said, log, "arrivals a second", begun)
	}()
	var done error
	select {
	case <-begun:
		done = do(ctx)
		if done != nil {
			cancel()
		}
	case <-read:
	}
	<-read
	err = cmd.Wait()
	if done != nil {
		return done
	}
	if err != nil {
		return fmt.Errorf("the load: %w: the end of %s:\n%s", err, log.Name(), tail(log.Name(), 40))
	}
	summary, err := summaryOf(filepath.Join(out, "summary.json"))
	if err == nil {
		r.report.saw("%s", summary)
	}
	return err
}

// watch copies lines, and closes begun at the first line that contains the sign.
func watch(from io.Reader, to io.Writer, sign string, begun chan<- struct{}) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fmt.Fprintln(to, lines.Text())
		if begun != nil && strings.Contains(lines.Text(), sign) {
			close(begun)
			begun = nil
		}
	}
}

// summaryOf returns from a load's report how many operations there were, and how many were
// repeated.
func summaryOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var report struct {
		Operations []struct {
			Op    string
			Count int
			P99   float64
		}
		Repeated []struct {
			Why   string
			Count int
		}
		Promises []struct {
			Metric   string
			Measured float64
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	total, worst := 0, 0.0
	for _, o := range report.Operations {
		if o.Op == "all" {
			total, worst = o.Count, o.P99
		}
	}
	failed := -1.0
	for _, p := range report.Promises {
		if p.Metric == "operations_failed" {
			failed = p.Measured
		}
	}
	said := fmt.Sprintf("%d operations, %g failed, p99 %.0f ms", total, failed, worst)
	for _, again := range report.Repeated {
		said += fmt.Sprintf(", %d repeated after %s", again.Count, again.Why)
	}
	return said, nil
}
