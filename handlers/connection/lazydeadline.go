package connection

import "time"

// lazyDeadline is the deadline of one direction of a connection. fasthttp sets three deadlines with
// every request, and each moves a timer of Go's runtime. Hardly any of these is needed: a read of
// bytes in readAhead does not wait, and a deadline that is slightly early serves as well.
type lazyDeadline struct {
	wanted  time.Time // zero: none
	applied time.Time // on the connection; zero: none
}

// deadlineTolerance is the divisor of the remaining time that yields how early a deadline may be.
const deadlineTolerance = 32

// apply makes the wanted deadline hold from now on. apply calls set only if the applied deadline is
// later than the wanted one, or too early.
func (d *lazyDeadline) apply(set func(time.Time) error) error {
	if d.wanted.IsZero() == d.applied.IsZero() {
		early := d.wanted.Sub(d.applied)
		if early == 0 || 0 < early && early <= time.Until(d.wanted)/deadlineTolerance {
			return nil
		}
	}
	if err := set(d.wanted); err != nil {
		return err
	}
	d.applied = d.wanted
	return nil
}
