package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// Bounds of one license's history, within which a checker comes to an end.
const (
	maxClients    = 10
	maxOperations = 300
	maxUnknowns   = 12
	// fewUnknowns is the number of unknown outcomes allowed besides those of the last requests, if each may double the
	// states of a license.
	fewUnknowns = 4
)

// plan is what clients do with one license.
type plan struct {
	name      string
	max       int // of the new license
	bound     int // devices that its first client binds before all else
	pool      int // devices that are played with
	clients   int
	each      int           // questions of each client
	expires   time.Duration // from the run's beginning, 0: never
	odds      []odd
	seenOften bool          // see onlyActivates; its clients are all patient
	keyed     bool          // half of what an operator does comes under an Idempotency-Key
	lease     time.Duration // of its leases; 0: devices are bound until they are removed
	swept     bool          // sweeps remove lapsed leases, so the model leaves the license out
	// reissues: the first client reissues the license, see givingBack.
	reissues bool
	grace    time.Duration // after its end; 0: none
	sold     bool          // with the terms of a product that does not let end users remove devices
	changes  int           // how many devices may change in a month; 0: none
	// inactive: it loses inactive devices, and far nodes work on it.
	inactive bool
	doubt    bool // the doubtful node works on the license, too
}

type odd struct {
	weight int
	action action
}

// multiplies reports whether a request without an answer leaves a license in one of several states for good, and not
// only until the next look at a device.
func (o odd) multiplies() bool {
	return slices.Contains([]action{suspend, reinstate, revoke, renew, extend, setMax, setNote, reissue}, o.action)
}

// plans are the licenses of a run. Together they have what goes wrong in
// different ways: a full license, a single device that comes and goes, few and
// many devices, and all that an operator does.
func plans(random *rand.Rand, now time.Time) []plan {
	busy := []odd{{5, activate}, {3, remove}, {1, get}, {1, validate}}
	list := []plan{
		{name: "hot", max: 1 + random.IntN(5), pool: 6, clients: 6, each: 20, odds: busy},
		{name: "one slot", max: 1, pool: 3, clients: 4, each: 20, odds: busy},
		{name: "ping-pong", max: 1, pool: 1, clients: 4, each: 20, odds: []odd{{4, activate}, {4, remove}, {1, get}}},
		{name: "one device", max: 2, pool: 1, clients: 8, each: 15, odds: []odd{{8, activate}, {1, remove}, {1, get}}},
		{name: "unlimited", pool: 8, clients: 6, each: 20, odds: busy},
		{name: "spilling", bound: 13, pool: 24, clients: 6, each: 20,
			odds: []odd{{6, activate}, {2, remove}, {1, get}}},
		{name: "spilled", max: 19, bound: 17, pool: 24, clients: 6, each: 20, odds: busy},
		{name: "spilled ping-pong", bound: 17, pool: 18, clients: 4, each: 20, odds: busy},
		{name: "expiring", max: 3, pool: 4, clients: 5, each: 20,
			expires: time.Duration(random.IntN(600)) * time.Millisecond,
			odds:    []odd{{5, activate}, {2, remove}, {1, renew}, {1, get}, {2, validate}}},
		{name: "operated", max: 3, pool: 4, clients: 6, each: 20,
			odds: []odd{{10, activate}, {4, remove}, {2, suspend}, {3, reinstate}, {4, setMax}, {2, setNote}, {3, get},
				{3, validate}}},
		{name: "revoked", max: 3, pool: 4, clients: 5, each: 20,
			odds: []odd{{20, activate}, {10, remove}, {1, suspend}, {2, reinstate}, {1, revoke}, {1, renew}, {3, get},
				{3, validate}}},
	}
	list = append(list,
		plan{name: "reissued", max: 2, pool: 4, clients: 6, each: 20,
			odds: []odd{{10, activate}, {4, remove}, {4, reissue}, {2, get}, {3, validate}}},
		plan{name: "reissued and operated", max: 3, pool: 4, clients: 5, each: 20,
			odds: []odd{{14, activate}, {6, remove}, {2, reissue}, {2, suspend}, {3, reinstate}, {2, get},
				{3, validate}}},
		plan{name: "keyed", max: 3, pool: 4, clients: 5, each: 14, keyed: true,
			expires: time.Duration(random.IntN(600)) * time.Millisecond,
			odds:    []odd{{6, activate}, {2, remove}, {3, suspend}, {4, reinstate}, {4, renew}, {2, validate}}},
		plan{name: "extended", max: 3, pool: 4, clients: 5, each: 14, keyed: true, expires: 1000 * time.Hour,
			odds: []odd{{6, activate}, {2, remove}, {1, suspend}, {2, reinstate}, {6, extend}, {2, setMax},
				{3, setNote}, {3, get}}},
		plan{name: "keyed and revoked", max: 3, pool: 4, clients: 5, each: 14, keyed: true, expires: 1000 * time.Hour,
			odds: []odd{{12, activate}, {6, remove}, {3, suspend}, {4, reinstate}, {1, revoke}, {4, extend},
				{2, setNote}, {2, get}}},
	)
	list = slices.Concat(list, floatingPlans(), changingPlans(changesPerMonth(now)), inactivePlans(),
		gracedPlans(random), doubtPlans())
	for n := range 4 {
		list = append(list,
			plan{name: fmt.Sprint("seen ", n), bound: 17, pool: 8, clients: 8, each: 32, seenOften: true,
				odds: []odd{{3, activate}, {3, remove}}},
			plan{name: fmt.Sprint("seen at the limit ", n), max: 19, bound: 17, pool: 8, clients: 8, each: 32,
				seenOften: true,
				odds:      []odd{{6, activate}, {4, remove}, {1, suspend}, {3, reinstate}}},
		)
	}
	return list
}

// The kinds of plans in whose licenses a bug can show, see bug.of.
func (p plan) matchesDevices() bool { return p.changes > 0 }
func (p plan) losesDevices() bool   { return p.inactive }
func (p plan) spills() bool         { return p.bound > 12 && !p.seenOften } // its devices have keys of their own
func (p plan) hasGrace() bool       { return p.grace > 0 }
func (p plan) ends() bool           { return p.expires > 0 }
func (p plan) endsInDays() bool     { return p.expires > 24*time.Hour && p.expires < 72*time.Hour }
func (p plan) leases() bool         { return p.lease > 0 }

// contends reports whether many clients have few devices.
func (p plan) contends() bool { return p.pool <= 3 && p.bound == 0 && p.lease == 0 }

// isUpdated reports whether the metadata of the license change.
func (p plan) isUpdated() bool {
	return slices.ContainsFunc(p.odds, func(o odd) bool { return o.action == setMax || o.action == setNote })
}

// license is one license of a run with what is done to it.
type license struct {
	plan
	key      licensing.LicenseKey
	devices  []string
	reissued []licensing.LicenseKey // its new keys, by number from 1
	newest   atomic.Int32           // the number of the latest that a client has asked for
	turn     int                    // of givingBack
	latest   [2]int                 // the numbers of the latest key, and of the key before: of givingBack
	prepared chan struct{}          // closed when its first devices are bound
	asked    atomic.Int32
	unknowns atomic.Int32
}

func newLicense(p plan, key licensing.LicenseKey) *license {
	l := &license{plan: p, key: key, prepared: make(chan struct{})}
	for i := range max(p.pool, p.bound) {
		name := fmt.Sprintf("device number %d", i)
		if i%2 == 0 {
			name = fmt.Sprintf("%016x", i) // an id that is stored packed
		}
		l.devices = append(l.devices, name)
	}
	return l
}

// spent reports whether more requests could exceed the bounds: every client has one under way, whose answer may get
// lost.
func (l *license) spent() bool {
	unknowns := maxUnknowns - l.clients
	if l.keyed || l.sold || l.lease != 0 || l.grace != 0 || l.changes > 0 || l.inactive ||
		slices.ContainsFunc(l.odds, odd.multiplies) {
		unknowns = min(unknowns, fewUnknowns)
	}
	return l.unknowns.Load() > int32(unknowns) || l.asked.Load() > int32(maxOperations-l.clients)
}

// operation is one request with its answer and the times of both. Times are in nanoseconds of the run; revisions are
// etcd's.
type operation struct {
	Client  int
	Process int
	In      input
	Out     output
	Call    time.Duration
	Return  time.Duration
	// Before and After are the newest revisions at the call and at the return.
	Before, After int64
	BoundAt       int64 `json:",omitempty"` // activate, accepted
	Held          held
	// Adrift: no answer came, since the process was killed, and the process may have sent the command to another node
	// before.
	Adrift bool `json:",omitempty"`
}

// work is what one client does: it goes to a node at random, with each question
// anew, unless the license is seen often. Client 0 creates the license, and client 1 may come before that.
func (r *run) work(l *license, number int) {
	random := r.random(l.name, uint64(number))
	client := r.newClient()
	if number == 0 {
		client = r.prepare(l, client, random)
		close(l.prepared)
	} else if !l.sold && (number > 1 || l.bound > 0) {
		<-l.prepared
	}
	for range l.each {
		if l.spent() {
			return
		}
		client = r.ask(l, client, number, l.question(r, number, random), random)
		switch {
		case l.seenOften:
			time.Sleep(time.Duration(random.IntN(10_000)) * time.Microsecond)
		case random.IntN(3) == 0:
			time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
		}
	}
}

// prepare creates the license and binds its first devices. It may fail: then other clients find no such license, or
// fewer devices.
func (r *run) prepare(l *license, client int, random *rand.Rand) int {
	in := input{Key: l.key, Action: create, Max: l.max, Lease: l.lease.Milliseconds(), Changes: l.changes,
		Inactive: l.inactive, Grace: l.grace.Milliseconds()}
	if l.expires != 0 {
		in.Expires = r.started.Add(l.expires).UnixMilli()
	}
	client = r.ask(l, client, 0, in, random)
	for device := range l.bound {
		if l.spent() {
			break
		}
		client = r.ask(l, client, 0, input{Key: l.key, Action: activate, Device: device}, random)
	}
	return client
}

// onlyActivates reports whether a client of a license that is seen often only activates the devices that were bound
// first, at one node, while other clients change the license at other nodes. So that node often stores when devices
// were seen, and its memory of the license grows old meanwhile.
func (l *license) onlyActivates(number int) bool { return l.seenOften && number%3 != 2 }

func (l *license) question(r *run, number int, random *rand.Rand) input {
	if l.onlyActivates(number) {
		return input{Key: l.key, Action: activate, Device: random.IntN(l.bound)}
	}
	if l.reissues && number == 0 {
		return l.givingBack(random)
	}
	in := input{Key: l.key, Action: pick(l.odds, random)}
	switch in.Action {
	case activate, remove, validate:
		in.Device = len(l.devices) - l.pool + random.IntN(l.pool)
		in.ByUser = in.Action == remove && !l.sold && random.IntN(3) == 0
		if l.lease != 0 && in.Action != remove && random.IntN(4) == 0 {
			in.Lease = 2 * l.lease.Milliseconds()
		}
	case setMax:
		in.Max = random.IntN(6)
		in.Note = random.IntN(3)
	case setNote:
		in.Note = 1 + random.IntN(1000)
	case renew:
		offset := skew(random.IntN(skews)) + time.Duration(random.IntN(1000))*time.Millisecond
		in.Expires = r.started.Add(offset + l.expires.Truncate(24*time.Hour)).UnixMilli()
	}
	l.reissueOrPresent(&in, random)
	in.Receipt = asksReceipt(in, random)
	switch in.Action {
	case suspend, reinstate, revoke, renew, extend:
		in.Keyed = l.keyed && random.IntN(2) == 0 || in.Action == extend // of which a turn of others makes a sum
	}
	return in
}

func pick(odds []odd, random *rand.Rand) action {
	sum := 0
	for _, o := range odds {
		sum += o.weight
	}
	at := random.IntN(sum)
	for _, o := range odds {
		if at -= o.weight; at < 0 {
			return o.action
		}
	}
	return get
}

// newClient returns the number of a new client. A client without an answer goes on under a new number, since the
// outcome of its last request is open.
func (r *run) newClient() int { return int(r.clients.Add(1)) }

// patience of most callers where no commands hop, and of the few that give up early.
const (
	patience   = 5 * time.Second
	impatience = 6 * time.Millisecond
)

// ask puts a client's question to some node, notes the answer, and returns the number
// under which the client goes on.
func (r *run) ask(l *license, client, number int, in input, random *rand.Rand) int {
	slots := r.slotsFor(l)
	switch {
	case l.onlyActivates(number):
		slots = slots[:1]
	case l.seenOften:
		slots = slots[1:]
	}
	p := anyOf(slots, random)
	limit := r.patience
	if in.Action == create {
		p, limit = r.maker, patience
	}
	if !l.seenOften && random.IntN(20) == 0 {
		limit = time.Duration(1 + random.IntN(int(impatience)))
	}
	var op operation
	if in.Keyed {
		var looks []operation
		op, looks = r.deliver(l, in, random)
		for _, look := range looks {
			look.Client = r.newClient()
			r.note(look)
			l.asked.Add(1)
		}
	} else {
		op = r.put(p, l, in, limit)
	}
	if l.reissues && in.Action == reissue && op.Out.Verdict == accepted {
		l.latest = [2]int{in.Number, l.latest[0]}
	}
	op.Client = client
	l.asked.Add(1)
	r.note(op)
	if op.Out.Verdict == unknown {
		l.unknowns.Add(1)
		return r.newClient()
	}
	return client
}

// anyProcess picks a node that lives.
func (r *run) anyProcess(random *rand.Rand) *process { return anyOf(r.slots, random) }

func anyOf(slots []*slot, random *rand.Rand) *process {
	for {
		if p := slots[random.IntN(len(slots))].current(); !p.isDead() {
			return p
		}
		time.Sleep(time.Millisecond)
	}
}

// put makes one operation at a node.
func (r *run) put(p *process, l *license, in input, limit time.Duration) operation {
	op := operation{Process: p.number, In: in, Before: r.etcd.revision(), Call: time.Since(r.started)}
	type answer struct {
		out     output
		boundAt int64
		held    held
	}
	a, answered := reach(r, p, limit, func(ctx context.Context) (a answer) {
		a.out, a.boundAt, a.held = r.do(ctx, p, l, in)
		return a
	})
	op.Out, op.BoundAt, op.Held = a.out, a.boundAt, a.held
	if !answered {
		op.Out.Verdict = unknown // the connection was reset
		op.Adrift = r.way.on
	}
	if op.Out.Verdict == unknown && (in.Action == get || in.Action == validate && l.lease == 0 && !l.inactive) {
		op.Out.Verdict = nothing
	}
	op.Return, op.After = time.Since(r.started), r.etcd.revision()
	op.Out.Clock, op.Out.Doubt = r.span(p, op.Call, op.Return), p.doubt
	return op
}

// span returns the times that the clocks can have shown that an operation at a process
// went by: its own, or, where its commands may hop, any.
func (r *run) span(p *process, from, to time.Duration) span {
	s := p.clock.span(from, to)
	if !r.way.on || p.doubt {
		return s
	}
	slots := r.slots
	if p.far {
		slots = r.far
	}
	for _, other := range slots {
		o := other.clock.span(from, to)
		s.from, s.to = min(s.from, o.from), max(s.to, o.to)
	}
	return s
}

// reach calls into a process. There is no answer where it is killed meanwhile.
func reach[T any](r *run, p *process, limit time.Duration, call func(context.Context) T) (answer T, answered bool) {
	given := make(chan T, 1)
	r.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		given <- call(ctx)
	})
	select {
	case answer = <-given:
		return answer, true
	case <-p.life.Done():
		return answer, false
	}
}

// do runs a question on a node.
func (r *run) do(ctx context.Context, p *process, l *license, in input) (out output, boundAt int64, h held) {
	switch in.Action {
	case create:
		return r.create(ctx, p, in), 0, h
	case get:
		return r.look(ctx, p, l, in), 0, h
	}
	result, err := r.command(ctx, p, l, in)
	out = outputOf(err)
	if err != nil {
		if out.Verdict == unknown && r.bug.unknown != nil {
			r.bug.unknown(r, p, l, in)
		}
		return out, 0, h
	}
	out.Removed, out.Invalid, out.Facts = result.Removed, result.Invalid, factsOf(&result.License)
	out.Lease = leaseOf(&result)
	out.Grace = (in.Action == activate || in.Action == validate) && out.Invalid == "" &&
		result.License.InGrace(p.node.Now())
	if in.Action == activate {
		boundAt = milli(result.Device.BoundAt)
	}
	if in.Action == reissue {
		out.Reissued = milli(result.License.Reissues.At(result.License.Reissues.Count() - 1))
	}
	return out, boundAt, heldOf(&result)
}

// command runs a command on a node.
func (r *run) command(ctx context.Context, p *process, l *license, in input) (licensing.Result, error) {
	named, err := r.presented(ctx, p, l, in)
	if err != nil {
		return licensing.Result{}, err
	}
	target := licensing.Target{Key: named}
	switch in.Action {
	case reissue:
		cmd := licensing.ReissueLicense{Target: target, New: l.reissued[in.Number-1]}
		if in.Overlap {
			cmd.Overlap = overlap
		}
		return p.node.Do(ctx, licensing.LicenseRef(in.Key), cmd)
	case activate:
		cmd := licensing.Activate{Target: target, Device: l.devices[in.Device], Receipt: in.receipt(),
			Lease: time.Duration(in.Lease) * time.Millisecond}
		if l.changes > 0 {
			cmd.Components = componentsOf(in.Device)
		}
		return p.node.Activate(ctx, cmd)
	case validate:
		return p.node.ValidateLicense(ctx, licensing.ValidateLicense{Target: target, Device: l.devices[in.Device],
			Receipt: in.receipt(), Lease: time.Duration(in.Lease) * time.Millisecond})
	case remove:
		if in.ByUser {
			return p.node.DeactivateDevice(ctx,
				licensing.DeactivateDevice{Target: target, Device: l.devices[in.Device]})
		}
		return p.node.RemoveDevice(ctx, licensing.RemoveDevice{Target: target, Device: l.devices[in.Device]})
	}
	return p.node.Do(ctx, licensing.LicenseRef(in.Key), licenseCommand(in))
}

// create stores the license under a key that other clients know already. No other goroutine may use the record through
// the same store meanwhile: swaps that bypass a node's mailbox must be the only swaps of their store on a record.
func (r *run) create(ctx context.Context, p *process, in input) output {
	terms := licensing.Terms{KeyPrefix: in.Key.Prefix(), MaxDevices: in.Max,
		SelfService: licensing.SelfService{Allowed: true}}
	if length := time.Duration(in.Lease) * time.Millisecond; length != 0 {
		terms.Lease = licensing.LeaseTerms{Length: length, Longest: 2 * length}
	}
	if in.Inactive {
		terms.InactiveAfter = licensing.Period{Days: 1}
	}
	if in.Changes > 0 {
		terms.Match = licensing.DeviceMatch{AtLeast: atLeast, ChangesPerMonth: in.Changes}
	}
	terms.Grace = licensing.Period{Clock: time.Duration(in.Grace) * time.Millisecond}
	l := terms.Issue(in.Key, r.owner, "pro", "", p.node.Now())
	if in.Expires != 0 {
		l.ExpiresAt = time.UnixMilli(in.Expires).UTC()
	}
	change := store.Change{Writes: []store.Write{
		{Ref: licensing.LicenseRef(in.Key), Record: licensing.NewLicense(l, nil, "")},
	}}
	outcome, err := p.store.Commit(ctx, change)
	for licensing.NotExecuted(err) && ctx.Err() == nil {
		// A fault may have said that etcd is full: then the maker refuses all licenses until its next probe.
		time.Sleep(time.Millisecond)
		outcome, err = p.store.Commit(ctx, change)
	}
	if err == nil && !outcome.Landed {
		return output{Verdict: refused, Reason: alreadyThere}
	}
	return outputOf(err)
}

// look reads the license with all its devices.
func (r *run) look(ctx context.Context, p *process, l *license, in input) output {
	view, err := p.node.License(ctx, r.owner, in.Key, store.DevicePage{Limit: 1000})
	out := outputOf(err)
	if err != nil {
		return out
	}
	view.HideLapsed(p.node.LeaseTime())
	return l.seen(view)
}

// bit is the bit of a device in the sets of the model; all of them for one
// that is none of the license's.
func (l *license) bit(id string) uint64 {
	for i, name := range l.devices {
		if name == id {
			return 1 << i
		}
	}
	return forever
}

// outputOf classifies an error as the API documents.
func outputOf(err error) output {
	var refusal *licensing.Error
	switch {
	case err == nil:
		return output{Verdict: accepted}
	case errors.Is(err, licensing.ErrOutcomeUnknown): // whatever it wraps
		return output{Verdict: unknown}
	case errors.Is(err, licensing.ErrUnavailable), errors.Is(err, licensing.ErrOverloaded),
		licensing.ReasonOf(err) == licensing.ReasonRateLimited: // as while the store keeps its reserve
		return output{Verdict: nothing}
	case errors.Is(err, licensing.ErrInternal):
		return output{Verdict: unknown, Reason: licensing.ReasonInternal}
	case !errors.As(err, &refusal):
		return output{Verdict: unknown}
	}
	out := output{Verdict: refused, Reason: refusal.Reason}
	out.Facts.Max, out.Facts.Current = refusal.Details["max_devices"], refusal.Details["current_devices"]
	return out
}

func factsOf(l *licensing.License) facts {
	return facts{
		Revoked: !l.RevokedAt.IsZero(), Suspended: !l.SuspendedAt.IsZero(),
		Max: l.MaxDevices, Current: l.CurrentDevices,
		Expires: milli(l.ExpiresAt), Activated: milli(l.ActivatedAt), Reissues: l.Reissues.Count(),
	}
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
