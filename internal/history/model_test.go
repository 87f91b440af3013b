package history

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"licet/licensing"
)

// state is one license by the rules alone. It is written without a look at
// licensing.Apply, so that the rules are checked along with their concurrency.
type state struct {
	exists, revoked, suspended bool

	max       int
	devices   uint64                     // a bit for each device of the license's pool
	expires   int64                      // 0: never
	ended     bool                       // a sweep has recorded the end: the license is expired for every clock
	note      int                        // in its metadata; 0: none
	activated span                       // what activated_at can be; zero: never activated
	keys      [licensing.MaxReissues]key // the new keys in order; the rest is zero
	leases    leases
	idle      idle
	// changes is how many devices have changed, of mostChanges; 0: none may.
	changes, mostChanges int
	grace                grace
}

func (s state) count() int { return bits.OnesCount64(s.devices) }

// span is a closed interval of times in milliseconds since 1970.
type span struct{ from, to int64 }

// forever stands for the end of a span that has none.
const forever = math.MaxInt64

// action is what a client asks for.
type action string

const (
	create    action = "create"
	activate  action = "activate"
	remove    action = "remove"
	get       action = "get"
	validate  action = "validate"
	suspend   action = "suspend"
	reinstate action = "reinstate"
	revoke    action = "revoke"
	renew     action = "renew"
	extend    action = "extend" // by a day, on licenses that end much later
	setMax    action = "set max"
	setNote   action = "set note"
	reissue   action = "reissue"
	roll      action = "roll"      // a rollout applies its terms, see run.rolled
	end       action = "end"       // a sweep records that the license has ended, see run.ends
	endGrace  action = "end grace" // a sweep records that the grace of the license has ended
)

// input is one question to one license.
type input struct {
	Key     licensing.LicenseKey
	Action  action
	Device  int   `json:",omitempty"` // its number in the license's pool
	ByUser  bool  `json:",omitempty"` // remove: on the end user's wish, which the licenses allow
	Max     int   `json:",omitempty"` // create, set max
	Expires int64 `json:",omitempty"` // create, renew
	Note    int   `json:",omitempty"` // set note, and set max along with it: 1 and up
	Keyed   bool  `json:",omitempty"` // under an Idempotency-Key, see deliver
	Number  int   `json:",omitempty"` // of the new key to present, or, for reissue, to make; 0: the first key
	Overlap bool  `json:",omitempty"` // reissue: bound devices may still use the keys before
	Lease   int64 `json:",omitempty"` // milliseconds; create, roll: of its leases, activate and validate: asked for
	Longest int64 `json:",omitempty"` // milliseconds; roll: of leases that devices ask for
	Changes int   `json:",omitempty"` // create: how many devices may change
	// Inactive: create a license that loses inactive devices.
	Inactive bool  `json:",omitempty"`
	Grace    int64 `json:",omitempty"` // milliseconds; create
	Receipt  bool  `json:",omitempty"` // activate and validate: it asks for one
}

// verdict is how a question ended.
type verdict string

const (
	accepted verdict = "ok"
	refused  verdict = "refused"      // by a rule; Reason names it
	nothing  verdict = "not executed" // and never will be
	unknown  verdict = "unknown"      // it may have happened, or may yet
)

// output is the answer to a client, and the time of the answer by the clock of the node.
type output struct {
	Verdict verdict
	Reason  licensing.Reason `json:",omitempty"`
	Removed bool             `json:",omitempty"`
	Invalid licensing.Reason `json:",omitempty"` // validate
	Facts   facts
	Lease   leaseOut
	Devices uint64 `json:",omitempty"` // get
	Note    int    `json:",omitempty"` // get
	Grace   bool   `json:",omitempty"` // activate and validate
	Later   bool   `json:",omitempty"` // its answer contains the facts of a later time
	Doubt   bool   `json:",omitempty"` // the node must not act by its clock
	// Reissued is when the license got its latest key, as stored: reissue.
	Reissued int64 `json:",omitempty"`
	Clock    span
}

// facts are the facts in the answer to an accepted command, right after the command. A refusal for the limit sets only
// the two counts.
type facts struct {
	Revoked, Suspended bool  `json:",omitempty"`
	Max, Current       int   `json:",omitempty"`
	Expires, Activated int64 `json:",omitempty"`
	Reissues           int   `json:",omitempty"`
}

// alreadyThere is the refusal to create a license that exists.
const alreadyThere licensing.Reason = "already_there"

// effect is one way for a question to end.
type effect struct {
	reason  licensing.Reason // empty: accepted
	removed bool
	invalid licensing.Reason
	next    state
}

// effects lists how a question can end on s at some moment of the clock's
// span. There are two only where an expiry lies within it.
func (s state) effects(in input, clock span) []effect {
	var list []effect
	future := func(e int64) bool { return e == 0 || e > clock.from }
	past := func(e int64) bool { return e != 0 && e <= clock.to }
	live, dead := !s.ended && future(s.expires), s.ended || past(s.expires)
	if in.Action == renew && past(in.Expires) {
		list = append(list, effect{reason: licensing.ReasonInvalidField, next: s})
	}
	switch {
	case in.Action == renew && !future(in.Expires):
	case in.Action == create && s.exists:
		list = append(list, effect{reason: alreadyThere, next: s})
	case in.Action == create:
		list = append(list, effect{next: state{exists: true, max: in.Max, expires: in.Expires,
			leases: leases{length: in.Lease, longest: 2 * in.Lease}, idle: idle{removed: in.Inactive},
			mostChanges: in.Changes, grace: grace{length: in.Grace}}})
	case !s.exists:
		list = append(list, effect{reason: licensing.ReasonLicenseNotFound, next: s})
	case in.presents() && s.replaced(in.Number, s.devices&(1<<in.Device) != 0) != "":
		why := s.replaced(in.Number, s.devices&(1<<in.Device) != 0)
		if in.Action == validate && why == licensing.ReasonLicenseKeyReplaced {
			list = append(list, effect{invalid: why, next: s})
		} else {
			list = append(list, effect{reason: why, next: s})
		}
	case in.Action == activate && !s.revoked && !s.suspended:
		if dead {
			list = s.expired(in, clock)
		}
		if live {
			list = append(list, s.bind(in.Device, clock))
		}
	case in.Action == validate && !s.revoked && !s.suspended:
		if dead {
			list = s.expired(in, clock)
		}
		if live && s.devices&(1<<in.Device) != 0 {
			list = append(list, effect{next: s})
		} else if live {
			list = append(list, effect{invalid: licensing.NotBound, next: s})
		}
	case in.Action == end:
		if !s.revoked && !s.ended && s.expires == in.Expires && past(s.expires) {
			s.ended = true
			list = append(list, effect{next: s})
		}
	case in.Action == endGrace:
		list = s.endGraceOn(in, clock)
	default:
		list = append(list, s.timeless(in, clock))
	}
	return list
}

// bind activates a device on a license that may be activated.
func (s state) bind(device int, clock span) effect {
	bit := uint64(1) << device
	switch {
	case s.devices&bit != 0:
		return effect{next: s}
	case s.mostChanges > 0:
		if next, changed := s.change(device); changed {
			return effect{next: next}
		}
	}
	switch {
	case s.max != 0 && s.count() >= s.max:
		return effect{reason: licensing.ReasonDeviceLimitReached, next: s}
	}
	s.devices |= bit
	if s.activated == (span{}) {
		s.activated = clock
	}
	return effect{next: s}
}

// timeless ends the questions whose answer does not depend on the time, on a
// license that exists.
func (s state) timeless(in input, clock span) effect {
	before := s
	switch in.Action {
	case activate:
		if s.revoked {
			return effect{reason: licensing.ReasonLicenseRevoked, next: s}
		}
		return effect{reason: licensing.ReasonLicenseSuspended, next: s}
	case validate:
		if s.revoked {
			return effect{invalid: licensing.ReasonLicenseRevoked, next: s}
		}
		return effect{invalid: licensing.ReasonLicenseSuspended, next: s}
	case remove:
		bit := uint64(1) << in.Device
		s.devices &^= bit
		return effect{removed: before.devices&bit != 0, next: s}
	case suspend, reinstate, renew, extend, reissue:
		if s.revoked {
			return effect{reason: licensing.ReasonInvalidLicenseState, next: s}
		}
	}
	switch in.Action {
	case suspend:
		s.suspended = true
	case reinstate:
		s.suspended = false
	case revoke:
		s.revoked = true
	case renew:
		s.expires, s.ended, s.grace.over = in.Expires, false, false
	case extend:
		s.expires, s.ended, s.grace.over = s.expires+dayInMilli, false, false
	case setMax:
		s.max = in.Max
	case roll:
		if in.Lease != 0 {
			s.leases.length, s.leases.longest = in.Lease, in.Longest
		}
		if in.Lease != 0 || in.Max == 0 || s.count() <= in.Max {
			s.max = in.Max
		}
	case reissue:
		n := s.reissues()
		if n == len(s.keys) {
			return effect{reason: licensing.ReasonReissueLimit, next: s}
		}
		s.keys[n] = key{int8(in.Number), in.Overlap, s.reissuedAt(clock)}
	}
	if in.Note != 0 {
		s.note = in.Note
	}
	return effect{next: s}
}

// step lists the states that a question and its answer can lead to; none
// where the answer is wrong.
//
// A question whose outcome is unknown has an effect here, and so none on a license that is
// not there yet: it never returns, so if it had none, or never has, it can be put behind all
// that was answered. Were it allowed to have none here as well, a search would find out at
// the end only that it has to have one elsewhere, and try all orders of the rest before.
func (s state) step(in input, out output) []state {
	switch {
	case out.Verdict == nothing:
		return []state{s}
	case s.ofLeases(in):
		return s.stepLeases(in, out)
	case s.ofIdle(in):
		return s.stepIdle(in, out)
	case out.Verdict == unknown:
		if !s.exists && in.Action != create {
			return nil
		}
		var states []state
		for _, e := range s.effects(in, span{out.Clock.from, forever}) {
			if !slices.Contains(states, e.next) {
				states = append(states, e.next)
			}
		}
		return states
	}
	var states []state
	for _, e := range s.effects(in, out.Clock) {
		if next, explained := e.explains(in, out); explained {
			states = append(states, next)
		}
	}
	return states
}

// explains reports whether an effect agrees with the answer, and returns the next state, which the answer may narrow.
func (e effect) explains(in input, out output) (state, bool) {
	s, f := e.next, out.Facts
	if e.reason != out.Reason || (e.reason == "") != (out.Verdict == accepted) {
		return s, false
	}
	if e.reason == licensing.ReasonDeviceLimitReached {
		return s, f == facts{Max: s.max, Current: s.count()}
	}
	if e.reason != "" || in.Action == create || out.Later {
		return s, true
	}
	if !s.showsGrace(in, out) || out.Invalid != e.invalid || in.Action == remove && out.Removed != e.removed ||
		in.Action == get && (out.Devices != s.devices || out.Note != s.note) {
		return s, false
	}
	if f.Activated != 0 {
		if f.Activated < s.activated.from || f.Activated > s.activated.to {
			return s, false
		}
		s.activated = span{f.Activated, f.Activated}
	}
	if in.Action == reissue && s.leases.length != 0 {
		latest := &s.keys[s.reissues()-1].at
		if out.Reissued < latest.from || out.Reissued > latest.to {
			return s, false
		}
		*latest = span{out.Reissued, out.Reissued}
	}
	if s.leases.length != 0 { // activations may have removed leases whose guard had passed by the lease clock
		least, _ := s.counted(s.leases.leaseClock, leaseGuard, s.devices)
		if f.Current < least || f.Current > s.count() {
			return s, false
		}
		f.Current = s.count()
	}
	return s, f == facts{
		Revoked: s.revoked, Suspended: s.suspended,
		Max: s.max, Current: s.count(),
		Expires: s.expires, Activated: s.activated.from, Reissues: s.reissues(),
	}
}

// model is that of many licenses at once. What is unknown of a license is the
// set of the states that it can be in.
func model() porcupine.Model {
	seed := maphash.MakeSeed()
	m := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			var keys []licensing.LicenseKey
			parts := map[licensing.LicenseKey][]porcupine.Operation{}
			for _, op := range history {
				key := op.Input.(input).Key
				if parts[key] == nil {
					keys = append(keys, key)
				}
				parts[key] = append(parts[key], op)
			}
			list := make([][]porcupine.Operation, len(keys))
			for i, key := range keys {
				list[i] = parts[key]
			}
			return list
		},
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, out any) []any {
			var states []any
			for _, next := range s.(state).step(in.(input), out.(output)) {
				states = append(states, next)
			}
			return states
		},
		Hash:              func(s any) uint64 { return maphash.Comparable(seed, s.(state)) },
		DescribeOperation: func(in, out any) string { return in.(input).String() + " → " + out.(output).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
	return m.ToModel()
}

// String says in short what is asked for.
func (in input) String() string {
	switch in.Action {
	case activate, remove, validate:
		return fmt.Sprintf("%s %d with key %d", in.Action, in.Device, in.Number)
	case reissue:
		return fmt.Sprintf("reissue as key %d (overlap %v)", in.Number, in.Overlap)
	case roll:
		return fmt.Sprintf("roll out %d devices, leases of %d", in.Max, in.Lease)
	case setMax:
		return fmt.Sprintf("%s %d, note %d", in.Action, in.Max, in.Note)
	case setNote:
		return fmt.Sprintf("%s %d", in.Action, in.Note)
	case create:
		return fmt.Sprintf("create (max %d, expires %d)", in.Max, in.Expires)
	case renew:
		return fmt.Sprintf("renew until %d", in.Expires)
	case end:
		return fmt.Sprintf("record the end %d", in.Expires)
	case endGrace:
		return fmt.Sprintf("record the end of the grace after %d", in.Expires)
	}
	return string(in.Action)
}

// String says in short what was answered.
func (out output) String() string {
	switch out.Verdict {
	case refused:
		return string(out.Reason)
	case accepted:
		text := fmt.Sprintf("ok, %d of %d", out.Facts.Current, out.Facts.Max)
		if out.Removed {
			text += ", removed"
		}
		if out.Invalid != "" {
			text += ", " + string(out.Invalid)
		}
		if out.Grace {
			text += ", in its grace"
		}
		if out.Facts.Suspended {
			text += ", suspended"
		}
		if out.Facts.Reissues != 0 {
			text += fmt.Sprintf(", %d new keys", out.Facts.Reissues)
		}
		if out.Note != 0 {
			text += fmt.Sprint(", note ", out.Note)
		}
		if out.Devices != 0 {
			text += " " + deviceList(out.Devices)
		}
		return text
	}
	return string(out.Verdict)
}

func (s state) String() string {
	if !s.exists {
		return "absent"
	}
	text := fmt.Sprintf("%s of %d", deviceList(s.devices), s.max)
	if s.revoked {
		text += " revoked"
	}
	if s.suspended {
		text += " suspended"
	}
	if s.expires != 0 {
		text += fmt.Sprint(" until ", s.expires)
	}
	if s.ended {
		text += " recorded"
	}
	if s.grace.length != 0 {
		text += fmt.Sprintf(" and %d (over: %v)", s.grace.length, s.grace.over)
	}
	if s.note != 0 {
		text += fmt.Sprint(" note ", s.note)
	}
	if s.keys[0].number != 0 {
		text += fmt.Sprint(" keys ", s.keys[:s.reissues()])
	}
	return text
}

func deviceList(devices uint64) string {
	var names []string
	for ; devices != 0; devices &= devices - 1 {
		names = append(names, fmt.Sprint(bits.TrailingZeros64(devices)))
	}
	return "{" + strings.Join(names, " ") + "}"
}
