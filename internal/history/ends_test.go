package history

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// recordedEnd is an end of a license, in milliseconds since 1970, or that of the grace after it.
type recordedEnd struct {
	key  licensing.LicenseKey
	what action
	at   int64
}

// recording is the time in which a sweep can have recorded an end: from the first commit that had the
// record, until the first such commit that landed; 0: no such commit is known to have landed.
type recording struct{ from, until time.Duration }

// noteEnds notes a commit of licenses that have a recorded end, or a recorded end of their grace. It need not be the
// current end: a renewal may have come after the record, in the same commit.
func (r *run) noteEnds(change store.Change, began time.Duration, landed bool) {
	now := time.Since(r.started)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range change.Writes {
		l := w.Record.License
		if l == nil || l.EndRecorded.IsZero() {
			continue
		}
		r.noteEnd(recordedEnd{l.Key, end, milli(l.EndRecorded)}, began, now, landed)
		ended := *l
		ended.ExpiresAt = l.EndRecorded
		if !l.GraceRecorded.IsZero() && l.GraceRecorded.Equal(ended.GraceEndsAt()) {
			r.noteEnd(recordedEnd{l.Key, endGrace, milli(l.EndRecorded)}, began, now, landed)
		}
	}
}

func (r *run) noteEnd(at recordedEnd, began, now time.Duration, landed bool) {
	known, found := r.recordings[at]
	if !found {
		known = recording{from: began}
	}
	known.from = min(known.from, began)
	if landed && (known.until == 0 || now < known.until) {
		known.until = now
	}
	r.recordings[at] = known
}

// sweepTime is longer than the time from the beginning of a sweep, whose clock decides what has ended,
// to the commit.
const sweepTime = 2 * time.Second

// ends lists the records of ends as operations: each makes its license expired for every clock, or its grace over. What
// etcd has had shows that an end was recorded, and the commits show when.
func (r *run) ends(t *timeline) (list []operation) {
	var last time.Duration
	for _, op := range r.operations {
		last = max(last, op.Return+1)
	}
	for _, l := range r.licenses {
		before := &licenseAt{}
		times := map[recordedEnd]int{}
		var recorded []recordedEnd
		record := func(what action, at int64) {
			e := recordedEnd{l.key, what, at}
			recorded = append(recorded, e)
			times[e]++
		}
		for _, s := range t.licenses[l.key.ID()] {
			if s.endRecorded != 0 && s.endRecorded != before.endRecorded {
				record(end, s.endRecorded)
			}
			if s.graceRecorded != 0 && s.graceRecorded == s.endRecorded+s.grace &&
				s.graceRecorded != before.graceRecorded {
				record(endGrace, s.endRecorded)
			}
			before = s
		}
		for _, e := range recorded {
			when := r.recordings[e]
			if times[e] > 1 {
				when.until = 0 // of the first record only
			}
			op := operation{Client: r.newClient(), In: input{Key: l.key, Action: e.what, Expires: e.at},
				Out:  output{Verdict: accepted, Later: true},
				Call: when.from, Return: cmp.Or(when.until, last)}
			for n, slot := range r.slots {
				c := slot.clock.span(op.Call-sweepTime, op.Return)
				if n == 0 {
					op.Out.Clock = c
				}
				op.Out.Clock = span{min(op.Out.Clock.from, c.from), max(op.Out.Clock.to, c.to)}
			}
			list = append(list, op)
		}
	}
	return list
}

// TestEndBeforeRenewal: an end that was recorded right before a renewal, in the same revision, is an operation, too.
func TestEndBeforeRenewal(t *testing.T) {
	const ended, renewed, grace = 1000, 9000, 50
	r := newRun(1, bug{})
	r.slots = []*slot{{clock: &clock{epoch: r.started, steps: []clockStep{{}}}}}
	l := &license{key: testKeys.Mint("LIC", r.owner, [keyring.LicenseKeyEntropy]byte{1})}
	r.licenses = append(r.licenses, l)
	states := []*licenseAt{
		{expires: ended, grace: grace},
		{expires: renewed, grace: grace, endRecorded: ended, graceRecorded: ended + grace},
	}
	var got []string
	for _, op := range r.ends(&timeline{licenses: map[licensing.LicenseID][]*licenseAt{l.key.ID(): states}}) {
		got = append(got, fmt.Sprint(op.In.Action, op.In.Expires))
	}
	if want := []string{fmt.Sprint(end, ended), fmt.Sprint(endGrace, ended)}; !slices.Equal(got, want) {
		t.Errorf("the ends are %v, want %v", got, want)
	}
}
