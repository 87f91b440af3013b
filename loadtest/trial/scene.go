package trial

import (
	"context"
	"errors"
	"sync"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// Scene is a service whose nodes are killed while a trial acts.
type Scene struct {
	Stage    *stage.Stage
	Balancer *stage.Balancer
	APIKey   string // for everything
	Pace     *Pace
	Havoc    *Havoc
	Progress *rig.Progress

	seed uint64
}

// NewScene starts etcd and nodes, and creates an API key. Nodes are to be killed so many times during so many
// operations. The flags are those of the nodes, besides the usual flags.
func (o *Options) NewScene(
	ctx context.Context, progress *rig.Progress, program string, operations, kills int, flags ...string,
) (*Scene, error) {
	progress.Step("building licet, starting etcd (members: %d) and licet (nodes: %d); the seed is %d", o.Members,
		o.Nodes, o.Seed)
	on, err := stage.New(ctx, &stage.Config{Setup: o.Setup, Name: program, Members: o.Members, Nodes: o.Nodes,
		Flags: flags})
	if err != nil {
		return nil, err
	}
	s := &Scene{Stage: on, Balancer: on.Balancer(), Pace: NewPace(operations, kills), Havoc: NewHavoc(on, o.Seed),
		Progress: progress, seed: o.Seed}
	if s.APIKey, err = on.Licet.CreateKey(ctx, on.Etcd, program); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Stop ends everything. Stop of a nil scene is a no-op.
func (s *Scene) Stop() {
	if s != nil {
		s.Balancer.CloseIdleConnections()
		s.Stage.Stop()
	}
}

// actors is how many goroutines Act uses.
const actors = 16

// Act calls do for each item of a list, several at a time, while nodes are killed. The operations of do call Proceed
// and Operated of the scene's pace. Act ends early with ctx, and if a node does not start again.
func Act[T any](ctx context.Context, s *Scene, list []T, do func(context.Context, T)) error {
	acting, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	var failed error
	group.Go(func() {
		if failed = s.Pace.strike(acting, func() error { return s.Havoc.Strike(ctx) }); failed != nil {
			cancel() // nothing would be proven any more
		}
	})
	_ = rig.Each(acting, len(list), actors, func(ctx context.Context, i int) error { // no call fails
		do(ctx, list[i])
		return nil
	})
	s.Pace.finish()
	group.Wait()
	return errors.Join(failed, ctx.Err())
}

// Report begins the report of a tally, with what was done to the nodes. proven is the verdict of a report without
// problems.
func (s *Scene) Report(t *Tally, proven string) *Report {
	r := t.Report()
	r.Seed, r.Proven = s.seed, proven
	r.Count("nodes killed and started again", s.Havoc.Times)
	r.Count("… of which two at once", s.Havoc.Both)
	r.CountTraffic(s.Balancer.Traffic())
	// Kills may follow the operations, but none of those during the operations may be missing.
	if s.Havoc.Times < s.Pace.kills {
		r.Problem("nodes were killed %d times of %d", s.Havoc.Times, s.Pace.kills)
	}
	return r
}

// Shut asks the nodes for licenses that contradict themselves, ends the nodes in order, verifies the store and a
// restored backup of the store, and looks for panics in the logs. It returns how many keys of each family are stored.
func (s *Scene) Shut(ctx context.Context, r *Report) map[string]int {
	s.Progress.Step("the nodes end; licet store verify, also of a restored backup")
	s.Balancer.CloseIdleConnections()
	r.Problems = append(r.Problems, s.Stage.Contradictions(ctx)...)
	r.Note(s.Stage.EndAll())
	families, err := s.Stage.Verify(ctx)
	if r.Note(err); err == nil {
		r.Note(s.Stage.VerifyRestored(ctx, families))
	}
	r.Problems = append(r.Problems, s.Stage.Bugs()...)
	return families
}
