package history

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// oneDay is the extension of a license.
var oneDay = licensing.Period{Days: 1}

const dayInMilli = int64(24 * time.Hour / time.Millisecond)

// keyedTries bounds how often a request is sent again under its key.
const keyedTries = 6

// deliver requests a change under an Idempotency-Key, and repeats the request at changing nodes until it has a result;
// at times it repeats the request once more after that. All of these are one operation. The license in each response
// is another operation: a look.
func (r *run) deliver(l *license, in input, random *rand.Rand) (op operation, looks []operation) {
	once := once("key", int(r.keys.Add(1)))
	op = operation{In: in, Before: r.etcd.revision(), Call: time.Since(r.started), Out: output{Verdict: nothing}}
	change := service.LicenseChange{Key: in.Key, Command: licenseCommand(in), Once: once}
	more := random.IntN(2)
	for try := 0; try < keyedTries; try++ {
		p := r.anyProcess(random)
		op.Process = p.number
		type answer struct {
			view     *store.LicenseView
			replayed bool
			err      error
		}
		look := operation{Process: p.number, In: input{Key: in.Key, Action: get}, Before: r.etcd.revision(),
			Call: time.Since(r.started)}
		a, answered := reach(r, p, r.patience, func(ctx context.Context) (a answer) {
			a.view, a.replayed, a.err = p.node.ChangeLicense(ctx, r.owner, change)
			return a
		})
		out := outputOf(a.err)
		if !answered {
			out = output{Verdict: unknown}
		}
		if out.Reason == licensing.ReasonRequestInProgress {
			time.Sleep(time.Millisecond) // an earlier one goes on there
			continue
		}
		op.Return, op.After = time.Since(r.started), r.etcd.revision()
		if kept(op.Out) {
			if out.Verdict == accepted || out.Verdict == refused {
				if !a.replayed || out.Verdict != op.Out.Verdict || out.Reason != op.Out.Reason {
					r.complain("keys", "%s: %s was %s under its key, and then %s, replayed %v", in.Key, in, op.Out, out,
						a.replayed)
				}
			}
		} else {
			op.Out = afterTry(op.Out, out)
		}
		if out.Verdict == accepted {
			look.Out, look.Return, look.After = l.seen(a.view), op.Return, op.After
			looks = append(looks, look)
		}
		if op.Out.Verdict == refused && !kept(op.Out) {
			break // it would be made anew
		}
		if kept(op.Out) {
			if more--; more < 0 {
				break
			}
		}
	}
	if op.Return == 0 {
		op.Return, op.After = time.Since(r.started), r.etcd.revision()
	}
	op.Out.Later = true
	for _, s := range r.slots {
		c := s.clock.span(op.Call, op.Return)
		if op.Out.Clock == (span{}) {
			op.Out.Clock = c
		}
		op.Out.Clock = span{min(op.Out.Clock.from, c.from), max(op.Out.Clock.to, c.to)}
	}
	return op, looks
}

// afterTry is what is known of a request after another try. A refusal that is not
// kept says nothing of a try before whose outcome is unknown.
func afterTry(before, now output) output {
	if before.Verdict == unknown && !kept(now) {
		return before
	}
	return output{Verdict: now.Verdict, Reason: now.Reason}
}

// kept reports whether the service keeps this answer for the same request.
func kept(out output) bool {
	return out.Verdict == accepted || out.Verdict == refused && out.Reason == licensing.ReasonInvalidLicenseState
}

// complain notes what is wrong by itself, whatever else was done.
func (r *run) complain(check, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, violation{check, fmt.Sprintf(format, args...)})
}

// licenseCommand is what an operator's question asks for.
func licenseCommand(in input) licensing.Command {
	target := licensing.Target{Key: in.Key}
	switch in.Action {
	case suspend:
		return licensing.SuspendLicense{Target: target}
	case reinstate:
		return licensing.ReinstateLicense{Target: target}
	case revoke:
		return licensing.RevokeLicense{Target: target}
	case renew:
		return licensing.RenewLicense{Target: target, ExpiresAt: time.UnixMilli(in.Expires).UTC()}
	case extend:
		return licensing.RenewLicense{Target: target, Extend: oneDay}
	default:
		update := licensing.UpdateLicense{Target: target}
		if in.Action == setMax {
			update.MaxDevices = new(in.Max)
		}
		if in.Note != 0 {
			update.Metadata = fmt.Sprintf(`{"note":%d}`, in.Note)
			update.Entitlements = licensing.Entitlements(update.Metadata)
			update.CustomerReference = &update.Metadata
		}
		return update
	}
}

// seen is what a look shows.
func (l *license) seen(view *store.LicenseView) output {
	out := output{Verdict: accepted, Facts: factsOf(&view.License)}
	for _, d := range view.Devices {
		out.Devices |= l.bit(d.ID)
	}
	if view.Metadata.Reference != view.Metadata.Object {
		out.Note = -1 // only half of a note
		return out
	}
	if view.Metadata.Object == seatNote {
		return out
	}
	text := strings.TrimSuffix(strings.TrimPrefix(view.Metadata.Object, `{"note":`), "}")
	if text != "" {
		note, err := strconv.Atoi(text)
		if err != nil {
			note = -1 // a value that no client requests
		}
		out.Note = note
	}
	if at := view.License.CreatedAt; !l.sold && view.Entitled.At(at, at) != view.Metadata.Object {
		out.Note = -1 // only half of a note
	}
	return out
}

// once makes the Idempotency-Key of one caller's one request.
func once(who string, number int) *node.Once {
	sum := sha256.Sum256(fmt.Appendln(nil, who, number))
	return &node.Once{Hash: string(sum[:16]), Fingerprint: sum}
}

// recordEnds records ends of licenses and orders, removes lapsed leases, continues rollouts and issues licenses, again
// and again, as any node does, only more often and concurrently: a license is then expired for every clock, see
// run.ends.
func (p *process) recordEnds() {
	p.again(5, 20, p.node.RecordLicenseEnds, p.node.GiveNotices, p.node.RemoveLapsedLeases, p.node.ContinueRollouts,
		p.node.IssueLicensesDue)
}

// again runs chores one after the other until the process ends, each time after least milliseconds and up to spread
// more.
func (p *process) again(least, spread int, chores ...func(context.Context) error) {
	for {
		select {
		case <-p.life.Done():
			return
		case <-time.After(time.Duration(least+p.faults.IntN(spread)) * time.Millisecond):
		}
		ctx, cancel := context.WithTimeout(p.life, time.Second)
		for _, chore := range chores {
			_ = chore(ctx) // which may fail, as all else
		}
		cancel()
	}
}
