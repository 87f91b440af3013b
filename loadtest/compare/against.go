package main

import "context"

// against measures the program and another one, such as an older build, each with an etcd and nodes of its own. Both
// get each load in turns, and the other program begins every second round. So what slows the machine down for longer
// than a load slows both, and the median of the ratios shows differences that two runs hide.
func against(ctx context.Context, l *lab) {
	const workers = 256 // activations at a time
	l.best.bind, l.best.hot, l.best.mix, l.best.renew =
		shape{workers: workers}, shape{workers: workers}, shape{workers: workers}, shape{workers: workers}
	var sides [2]*round
	for i, binary := range []string{l.setup.Binary, l.cfg.against} {
		own := *l
		own.setup.Binary = binary
		b := own.bench(ctx, 1, manyClients()...)
		defer b.stop()
		sides[i] = &round{lab: &own, bench: b}
	}
	loads := []func(*round, context.Context){
		(*round).distinct, (*round).hot, (*round).mixed,
		func(r *round, ctx context.Context) { r.keep("reactivate", r.repeat(ctx)) },
	}
	l.eachRound("both programs", func(number int) {
		for _, load := range loads {
			for turn := range sides {
				load(sides[(number+turn)%2], ctx)
			}
		}
		for i, ours := range sides[0].pending {
			theirs := sides[1].pending[i]
			l.report.inform(ours.row+": rate ÷ the other program's", "", ours.rate()/theirs.rate())
			if ours.node > 0 && theirs.node > 0 { // Linux counts in steps of 10 ms, which is longer than a small load
				l.report.inform(ours.row+": CPU of the node ÷ the other program's", "",
					ours.perOperation(ours.node)/theirs.perOperation(theirs.node))
			}
		}
		sides[0].pending, sides[1].pending = nil, nil
	})
}
