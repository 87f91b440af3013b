package main

import (
	"context"
	"slices"
	"time"
)

// fleet is many connections to nodes, driven by one goroutine. It sends one request at a
// time on each, and reads every answer whole.
type fleet struct {
	addresses []string // of nodes; the lanes go round among them
	// build returns request number i; it is valid until the next call.
	build func(i int) []byte
	lanes []lane
	poll  *poller

	out     *outcome
	keep    bool
	end     time.Time // what succeeds later does not count as served; zero: everything counts
	free    []int     // lanes without a request; the last one goes first
	backlog []arrival // due, and no lane was free
	scan    time.Time // when late answers are looked for next
}

// lane is one connection.
type lane struct {
	fd      int // -1: to be connected
	buffer  []byte
	have    int
	busy    bool
	used    time.Time // last
	arrival           // of the request under way
}

// arrival is an operation that is due.
type arrival struct {
	number int
	due    time.Time
}

// newFleet returns a fleet with so many connections, spread over the nodes. None is open
// yet.
func newFleet(addresses []string, connections int, build func(i int) []byte) *fleet {
	f := &fleet{addresses: addresses, build: build, lanes: make([]lane, connections)}
	for i := range f.lanes {
		f.lanes[i] = lane{fd: -1, buffer: make([]byte, 2048)}
	}
	return f
}

func (f *fleet) open() (err error) {
	if f.poll, err = newPoller(); err != nil {
		return err
	}
	for i := range f.lanes {
		if err := f.connect(i); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) close() {
	for i := range f.lanes {
		f.hangUp(i)
	}
	if f.poll != nil {
		f.poll.close()
	}
}

func (f *fleet) connect(i int) (err error) {
	f.lanes[i].fd, err = f.poll.connect(f.addresses[i%len(f.addresses)], i)
	f.lanes[i].used = time.Now()
	return err
}

func (f *fleet) hangUp(i int) {
	if l := &f.lanes[i]; l.fd >= 0 {
		f.poll.hangUp(l.fd)
		l.fd = -1
	}
}

// reset prepares the fleet for another load, with no free lane.
func (f *fleet) reset(keep bool, end time.Time) {
	f.out, f.keep, f.end, f.scan = &outcome{}, keep, end, time.Now().Add(time.Second)
	f.free, f.backlog = f.free[:0], nil
}

// begin prepares the fleet for another load on all lanes.
func (f *fleet) begin(keep bool, end time.Time) {
	f.reset(keep, end)
	for i := range f.lanes {
		f.free = append(f.free, i)
	}
}

func (f *fleet) closedLoop(ctx context.Context, count int, limit time.Duration) *outcome {
	began := time.Now()
	f.begin(false, time.Time{})
	next := 0
	more := func(now time.Time) bool {
		return ctx.Err() == nil && (count == 0 || next < count) && (limit == 0 || now.Sub(began) < limit)
	}
	for {
		now := time.Now()
		for len(f.free) > 0 && more(now) {
			f.send(arrival{next, now})
			next++
		}
		if len(f.free) == len(f.lanes) {
			break
		}
		f.wait(now, longestWait)
	}
	f.out.elapsed = time.Since(began)
	return f.out
}

// single makes one operation on a lane, and returns its code.
func (f *fleet) single(lane, number int, build func(i int) []byte) (code int) {
	f.reset(false, time.Time{})
	f.build, f.free = build, append(f.free, lane)
	f.send(arrival{number, time.Now()})
	for f.lanes[lane].busy {
		f.wait(time.Now(), longestWait)
	}
	for code = range f.out.failed {
	}
	return code
}

// worker returns a worker that makes operations on the first lane, with requests of its own.
func (f *fleet) worker(build func(i int) []byte) worker {
	return func(i int) int { return f.single(0, i, build) }
}

// longestWait is how long the end of ctx may go unnoticed.
const longestWait = 100 * time.Millisecond

// openLoop takes the end of ctx for the end of its span, so a load can last as long as
// something else does.
func (f *fleet) openLoop(ctx context.Context, a arrivals) *outcome {
	began := time.Now()
	end := began.Add(a.span)
	f.begin(a.keep, end)
	schedule := newSchedule(began, a.rate)
	for ended := false; ; {
		now := time.Now()
		for !ended && !schedule.due.After(now) {
			if schedule.due.After(end) || ctx.Err() != nil {
				ended = true
				break
			}
			f.backlog = append(f.backlog, arrival{schedule.number, schedule.due})
			schedule.next()
		}
		if ctx.Err() != nil && now.Before(end) {
			end, a.span = now, now.Sub(began)
			f.end = end
		}
		if now.After(end) || ctx.Err() != nil {
			ended = true
			for _, a := range f.backlog {
				f.out.drop(a, end)
			}
			f.backlog = nil
		}
		for len(f.backlog) > 0 && len(f.free) > 0 {
			f.send(f.backlog[0])
			f.backlog = f.backlog[1:]
		}
		if ended && len(f.free) == len(f.lanes) {
			break
		}
		wait := longestWait
		if !ended {
			wait = min(wait, schedule.due.Sub(now))
		}
		f.wait(now, wait)
	}
	f.out.elapsed = a.span
	slices.Sort(f.out.latencies)
	return f.out
}

// idleLimit is the age at which an idle connection is replaced. A node closes connections
// that are idle for 75 s, and a connection that a node is about to close would look
// broken.
const idleLimit = 30 * time.Second

// send begins an operation on the lane that became free last.
func (f *fleet) send(a arrival) {
	i := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	l := &f.lanes[i]
	l.arrival, l.busy, l.have = a, true, 0
	f.out.made++
	if a.due.Sub(l.used) > idleLimit {
		f.hangUp(i)
	}
	l.used = a.due
	if l.fd < 0 && f.connect(i) != nil {
		f.finish(i, codeBroken)
		return
	}
	if !f.poll.write(l.fd, f.build(a.number)) {
		f.finish(i, codeBroken)
	}
}

// finish ends the operation on a lane. A broken connection is not used again.
func (f *fleet) finish(i, code int) {
	l := &f.lanes[i]
	l.busy = false
	f.free = append(f.free, i)
	if code == codeBroken {
		f.hangUp(i)
	}
	if code != 0 {
		f.out.fail(code)
		return
	}
	if f.end.IsZero() {
		f.out.ok++
		return
	}
	now := time.Now()
	if f.keep {
		f.out.latencies = append(f.out.latencies, now.Sub(l.due))
	}
	if now.Before(f.end) {
		f.out.ok++
	}
}

// wait reads the answers that come within a time.
func (f *fleet) wait(now time.Time, longest time.Duration) {
	for _, i := range f.poll.wait(longest) {
		f.read(i)
	}
	if now.Before(f.scan) {
		return
	}
	f.scan = now.Add(time.Second)
	for i := range f.lanes {
		// An operation that waited for a lane was due long ago. It is given up early, and the report shows that.
		if l := &f.lanes[i]; l.busy && now.Sub(l.due) > 2*answerTimeout {
			f.finish(i, codeBroken)
		}
	}
}

// read reads what has come on a lane.
func (f *fleet) read(i int) {
	l := &f.lanes[i]
	if l.fd < 0 {
		return
	}
	n := f.poll.read(l.fd, l.buffer[l.have:])
	switch {
	case n == readNothing:
		return
	case !l.busy: // the node has closed the connection, or sends something unasked
		f.hangUp(i)
		return
	case n <= 0:
		f.finish(i, codeBroken)
		return
	}
	l.have += n
	a, complete, err := parseAnswer(l.buffer[:l.have])
	switch {
	case err != nil:
		f.finish(i, codeBroken)
	case complete:
		code := envelopeCode(a.status, l.buffer[a.head:l.have])
		if a.closes {
			f.hangUp(i)
		}
		f.finish(i, code)
	case l.have == len(l.buffer):
		l.buffer = append(l.buffer, make([]byte, max(a.head+a.length-l.have, l.have))...)
	}
}
