package history

import (
	"cmp"
	"time"

	"licet/licensing"
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

// noteEnds notes a commit of licenses whose current end is recorded, or that of their grace.
func (r *run) noteEnds(change store.Change, began time.Duration, landed bool) {
	now := time.Since(r.started)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range change.Writes {
		l := w.Record.License
		if l == nil || l.ExpiresAt.IsZero() || !l.EndRecorded.Equal(l.ExpiresAt) {
			continue
		}
		r.noteEnd(recordedEnd{l.Key, end, milli(l.ExpiresAt)}, began, now, landed)
		if !l.GraceRecorded.IsZero() && l.GraceRecorded.Equal(l.GraceEndsAt()) {
			r.noteEnd(recordedEnd{l.Key, endGrace, milli(l.ExpiresAt)}, began, now, landed)
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
// etcd has held shows that an end was recorded, and the commits show when.
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
			if s.endRecorded != 0 && s.endRecorded == s.expires && s.endRecorded != before.endRecorded {
				record(end, s.expires)
			}
			if s.graceRecorded != 0 && s.graceRecorded == s.expires+s.grace &&
				s.graceRecorded != before.graceRecorded {
				record(endGrace, s.expires)
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
