package payment

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// Callbacks can be lost for good, and no other sweep finds refunds and disputes that are made at the provider. So a
// sweep reads the provider's own list of events, and asks about each object that an event names, as a callback does.

const (
	// eventListLag is how old an event is before it counts as read: the provider may list it late, and its callback
	// has mostly come by then.
	eventListLag = 5 * time.Minute
	// eventPageTime is for the questions about the objects of a page: a reading begins no page with less time left, but
	// reads one page at least.
	eventPageTime = 8 * time.Second
	// eventReadings bounds the readings of one call of AskProviderEvents, which go on while there are more events.
	eventReadings = 4
	// eventFailures is after how many failed pages a reading still goes on, with the event that has failed.
	eventFailures = 16
	// The service asks again about an object whose state it can't record for at least this time, and at least so often.
	// Stripe also repeats callbacks for three days. While the provider fails, the service asks as long as Stripe keeps
	// an event.
	eventsAgainFor   = 3 * 24 * time.Hour
	eventsFailingFor = 30 * 24 * time.Hour
	eventsAgainTries = 10
	// eventsAgainOfOwner bounds such objects of one owner in an account that owners share: the reading of all owners'
	// events stops once store.MaxProviderEventsAgain objects wait.
	eventsAgainOfOwner = 4
	// eventsForbidden is how long the sweep rests if the provider's key may not read events.
	eventsForbidden = time.Hour
)

// EventPage is a page of a provider's events.
type EventPage struct {
	Events []Event   // the newest first
	At     time.Time // when the provider has answered, by its own clock
	More   bool      // there are older events that were asked for
	// Key differs for each secret key of the provider, at most 64 bytes. Another key may be that of another account.
	Key string
}

// Event is an event at a provider.
type Event struct {
	ID     string // the provider's
	At     time.Time
	Object Object // that the event names
}

// EventSource is an account at a provider.
type EventSource struct {
	// Owner has the account, unless Shared is set: then the account is that of all owners for whom Shared returns true,
	// and Owner has no account id.
	Owner  licensing.Owner
	Shared func(licensing.Owner) bool
}

// AskProviderEvents reads the events of accounts at providers, as far as they are due, and records what has become of
// the objects that they name. It is a sweep for service.Sweeps. Any number of nodes may run it.
func (d *Desk) AskProviderEvents(ctx context.Context, sources []EventSource) error {
	shared := map[licensing.Owner]func(licensing.Owner) bool{}
	owners := make([]licensing.Owner, len(sources))
	for i, source := range sources {
		owners[i], shared[source.Owner] = source.Owner, source.Shared
	}
	var more atomic.Bool
	read := func(ctx context.Context, reading *service.EventReading) error {
		r := eventReader{
			callbacks: d.callbacks, provider: d.providers.Of(reading.Owner), reading: reading,
			shared: shared[reading.Owner],
		}
		if r.provider == nil {
			return nil
		}
		err := r.read(ctx)
		if r.more {
			more.Store(true)
		}
		return err
	}
	var failed error
	for range eventReadings {
		more.Store(false)
		if err := d.node.EachProviderEvents(ctx, owners, read); failed == nil {
			failed = err
		}
		if !more.Load() || ctx.Err() != nil {
			break
		}
	}
	return failed
}

// eventReader reads the events of one account in one reading.
type eventReader struct {
	*callbacks
	provider Provider
	reading  *service.EventReading
	shared   func(licensing.Owner) bool // nil: the account is the owner's alone
	done     map[Object]bool            // recorded or given up in this reading
	more     bool                       // the time was over before the events
}

// read reads pages while there is time, and stores how far it has come after each. It sends one request at a time. The
// last part of the time is for storing. If there are more pages, the next reading may begin at once.
func (r *eventReader) read(ctx context.Context) error {
	work, cancel := ctx, context.CancelFunc(func() {})
	if deadline, bounded := ctx.Deadline(); bounded {
		work, cancel = context.WithDeadline(ctx, deadline.Add(-2*recordTime))
	}
	defer cancel()
	r.done = map[Object]bool{}
	r.askAgain(work)
	var failed error
	failures := 0
	for more := true; more; {
		if more, failed = r.page(work); failed != nil {
			if failures++; failures > eventFailures || errors.Is(failed, ErrForbidden) || work.Err() != nil {
				break
			}
			more = true
		}
		if mine, err := r.reading.Keep(ctx); err != nil || !mine {
			return err
		}
		if deadline, bounded := work.Deadline(); bounded && time.Until(deadline) < eventPageTime {
			if r.more = more && failed == nil; r.more {
				r.reading.Rest = 0
			}
			break
		}
	}
	if errors.Is(failed, ErrForbidden) {
		r.reading.Rest = eventsForbidden
		r.node.ReportEvents(r.reading.Owner, "", "the key of the payment provider may not read events: give it this "+
			"permission, or the service does not find refunds and disputes whose callbacks are lost", failed)
		failed = nil
	}
	return errors.Join(failed, r.reading.End(ctx))
}

// page reads the next page of the pass under way, or the first page of a new pass. more reports that the pass has more
// pages. If page fails, the next page begins with the event that has failed.
func (r *eventReader) page(ctx context.Context) (more bool, err error) {
	read := &r.reading.Read
	page, err := r.provider.Events(ctx, read.From, read.After)
	switch {
	case errors.Is(err, ErrUnknownObject) && read.After != "": // the provider does not keep the event any more
		read.To, read.After = time.Time{}, ""
		return true, nil
	case err != nil:
		return false, err
	case read.Key != "" && read.Key != page.Key: // with the earlier key, the events may have been of another account
		*read = store.ProviderEvents{Key: page.Key, Next: read.Next, Again: read.Again}
		return true, nil
	case read.To.IsZero():
		read.To = page.At.Add(-eventListLag)
	}
	read.Key = page.Key
	for _, event := range page.Events {
		if event.Object.ID != "" && event.At.Before(read.To) {
			if err := r.take(ctx, event.Object); err != nil {
				return false, err
			}
		}
		read.After = event.ID
	}
	if page.More && len(page.Events) > 0 {
		return true, nil
	}
	if read.To.After(read.From) {
		read.From = read.To
	}
	read.To, read.After = time.Time{}, ""
	return false, nil
}

// take asks about an object. An object whose state can't be recorded now is asked about again in later readings, so
// that it keeps no other object waiting. take gives up an object that the provider's key may not read, and the objects
// of an owner who has too many in a shared account, unless the provider has failed. take fails only if too many objects
// wait, or if there is no time.
func (r *eventReader) take(ctx context.Context, object Object) error {
	again := &r.reading.Read.Again
	if slices.ContainsFunc(*again, func(a store.ProviderEventAgain) bool { return objectAgain(a) == object }) {
		return nil
	}
	owner, err := r.ask(ctx, object)
	if (atProvider(err) || licensing.NotExecuted(err)) && ctx.Err() == nil { // most of these are over at once
		owner, err = r.ask(ctx, object)
	}
	accountID := ""
	if r.shared != nil && !atProvider(err) {
		accountID = owner.AccountID
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, ErrForbidden):
		r.giveUp(owner, object, "the key of the payment provider may not read it", err)
		return nil
	case accountID != "" && r.waiting(accountID) >= eventsAgainOfOwner:
		r.giveUp(owner, object, "others of the account wait for another try", err)
		return nil
	case len(*again) == store.MaxProviderEventsAgain:
		return err
	}
	*again = append(*again, store.ProviderEventAgain{Kind: string(object.Kind), ID: object.ID, Since: r.reading.Now,
		AccountID: accountID})
	return nil
}

// atProvider reports whether an object was not recorded because the provider has failed, such as by too many requests:
// not because of the object's order, of its owner's load, or of a permission.
func atProvider(err error) bool {
	for _, other := range []error{
		ErrForbidden, errUnpaid, errNoInvoice, licensing.ErrRefundOpen, licensing.ErrRefundMisfit,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return licensing.ReasonOf(err) == licensing.ReasonProviderFailed
}

// waiting returns how many objects of an owner in a shared account are asked about again.
func (r *eventReader) waiting(accountID string) (n int) {
	for _, a := range r.reading.Read.Again {
		if a.AccountID == accountID {
			n++
		}
	}
	return n
}

// giveUp logs that no later reading asks about an object.
func (r *eventReader) giveUp(owner licensing.Owner, object Object, why string, err error) {
	r.done[object] = true
	r.node.ReportEvents(owner, object.ID, "a refund or a dispute at the payment provider could not be recorded, "+
		"and is given up, since "+why+": look at it in the provider's dashboard", err)
}

func objectAgain(a store.ProviderEventAgain) Object {
	return Object{Kind: ObjectKind(a.Kind), ID: a.ID}
}

// askAgain asks again about the objects whose state could not be recorded, in at most half of the time: the new events
// have the other half. Objects for which there was no time come first in the next reading.
func (r *eventReader) askAgain(ctx context.Context) {
	if deadline, bounded := ctx.Deadline(); bounded {
		half, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
		ctx = half
	}
	var waiting, failed []store.ProviderEventAgain
	for _, a := range r.reading.Read.Again {
		if ctx.Err() != nil {
			waiting = append(waiting, a)
			continue
		}
		a.Tries++
		owner, err := r.ask(ctx, objectAgain(a))
		keep := eventsAgainFor
		if atProvider(err) {
			keep = eventsFailingFor
		}
		switch {
		case err == nil:
		case errors.Is(err, ErrForbidden):
			r.giveUp(owner, objectAgain(a), "the key of the payment provider may not read it", err)
		case r.reading.Now.Sub(a.Since).Abs() >= keep && a.Tries >= eventsAgainTries:
			r.giveUp(owner, objectAgain(a), "all tries have failed", err)
		default:
			failed = append(failed, a)
		}
	}
	r.reading.Read.Again = append(waiting, failed...)
}

// ask does for an object what a callback does, once in a reading. It returns the owner of the object's order, as far as
// known, and otherwise the owner of the account.
func (r *eventReader) ask(ctx context.Context, object Object) (owner licensing.Owner, err error) {
	if r.done[object] {
		return r.reading.Owner, nil
	}
	owner, found, err := r.ownerOf(ctx, object)
	if err == nil && found {
		err = r.Called(ctx, owner, object)
	}
	r.done[object] = err == nil
	if owner.AccountID == "" {
		owner = r.reading.Owner
	}
	return owner, err
}

// ownerOf returns the owner of the order of an object. found is false if the object is of no order that is paid at the
// account.
func (r *eventReader) ownerOf(ctx context.Context, object Object) (owner licensing.Owner, found bool, err error) {
	if r.shared == nil {
		return r.reading.Owner, true, nil
	}
	state, err := r.look(ctx, r.provider, object)
	switch {
	case errors.Is(err, ErrUnknownObject):
		return owner, false, nil
	case err != nil:
		return owner, false, err
	}
	owner, found, err = r.node.OwnerOfOrder(ctx, state.OrderNo)
	return owner, found && r.shared(owner), err
}
