package main

import (
	"bufio"
	"context"
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
func (r *walk) under(ctx context.Context, l load, do func(context.Context)) {
	key := r.variable("LICET_API_KEY")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := filepath.Join(r.logs, "load-"+l.scenario)
	log := must(os.Create(out + ".log"))
	defer log.Close()
	cmd := r.control.onNetwork(ctx, r.tools.load, "--scenario", l.scenario, "--rate", fmt.Sprint(l.rate), "--duration",
		l.lasts.String(), "--target", address, "--k6", r.tools.k6, "--slack", "20", "--out", out)
	cmd.Dir = r.cfg.root
	cmd.Env = append(os.Environ(), "LICET_API_KEY="+key)
	ownSession(cmd)
	cmd.Stdout = log
	said := must(cmd.StderrPipe())
	stopIf(cmd.Start())
	begun := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		copyUntil(said, log, "arrivals a second", begun)
	}()
	var done error
	select {
	case <-begun:
		done = attempt(func() { do(ctx) })
		if done != nil {
			cancel()
		}
	case <-read:
	}
	<-read
	err := cmd.Wait()
	stopIf(done)
	if err != nil {
		stop("the load: %w: the end of %s:\n%s", err, log.Name(), tail(log.Name(), 40))
	}
	r.report.saw("the load's report: %s", filepath.Join(out, "summary.txt"))
}

// copyUntil copies lines, and closes begun at the first line that contains the sign.
func copyUntil(from io.Reader, to io.Writer, sign string, begun chan<- struct{}) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fmt.Fprintln(to, lines.Text())
		if begun != nil && strings.Contains(lines.Text(), sign) {
			close(begun)
			begun = nil
		}
	}
}
