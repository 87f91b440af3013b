package connection

import "time"

// lazyDeadline is one direction's deadline on a connection. fasthttp moves three
// of them with every request, each time a timer of the runtime's, and hardly any
// is needed: what was read ahead is read in no time, and a deadline that is only
// a little earlier than what is wanted does as well.
type lazyDeadline struct {
	wanted  time.Time
	applied time.Time
}

// deadlineGrace is the part of the time that is left by which a deadline may be
// early.
const deadlineGrace = 32

// apply sees to it that what is wanted holds from now on, by set if need be.
func (d *lazyDeadline) apply(set func(time.Time) error) error {
	if d.wanted.IsZero() == d.applied.IsZero() {
		early := d.wanted.Sub(d.applied)
		if early == 0 || 0 < early && early <= time.Until(d.wanted)/deadlineGrace {
			return nil
		}
	}
	if err := set(d.wanted); err != nil {
		return err
	}
	d.applied = d.wanted
	return nil
}
