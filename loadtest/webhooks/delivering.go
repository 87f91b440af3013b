package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/trial"
)

// hopeless is how long nothing may be delivered before missing events count as lost: many
// times as long as the lease of a killed node lasts.
const hopeless = 90 * time.Second

// Delivery says how to wait for the remaining events.
type Delivery struct {
	Progress   *rig.Progress
	Havoc      *trial.Havoc
	Changes    map[Change]bool // see Audit
	Kills      int             // how often nodes are killed meanwhile
	Impatience time.Duration   // see hurry
}

// Deliver waits until the event of each acknowledged change and all events of the feed are delivered, and the hanging
// endpoint was called, while nodes are killed.
// If no event comes any more, Deliver returns too: the audit then names the missing events. In the end Deliver ends the
// client that follows the feed.
func (e *Endpoints) Deliver(ctx context.Context, d Delivery) error {
	events := 0
	for _, acknowledged := range d.Changes {
		if acknowledged {
			events++
		}
	}
	all, begun := 2*events, int(e.delivered.Load())
	show := d.Progress.Long(all-begun, "%d deliveries are left, while nodes are killed %d times", all-begun, d.Kills)
	for before, since := begun, time.Now(); ; {
		now := int(e.delivered.Load())
		show(now - begun)
		if now > before {
			before, since = now, time.Now()
		}
		// The worker that delivers to the hanging endpoint may be killed before its first call. Then another worker
		// calls the endpoint once the lease has expired.
		done := now >= all && e.hanging.soFar().calls > 0
		if done { // the feed also has the events of changes whose outcome is unknown
			feed, err := readFeed(ctx, e.desk)
			if err != nil {
				return err
			}
			done, events, all = now >= 2*len(feed), len(feed), max(all, 2*len(feed))
		}
		if done || time.Since(since) > hopeless {
			break
		}
		if e.killed < d.Kills && now-begun >= (e.killed+1)*(all-begun)/(d.Kills+1) {
			e.killed++
			if err := d.Havoc.Strike(ctx); err != nil {
				return err
			}
		}
		if err := e.hurry(ctx, events, d.Impatience); err != nil {
			return err
		}
		if rig.Rest(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("of %d deliveries %d have come: %w", all, now, context.Cause(ctx))
		}
	}
	rig.Rest(ctx, 3*time.Second) // events that were made up have time to come
	e.unfollow()
	return errors.Join(<-e.ended, ctx.Err())
}

// hurry disables the unreliable endpoint and enables it again when no delivery has come
// for a while, as people do who have repaired their receiver: an event that has failed
// twice waits five minutes, and then half an hour.
func (e *Endpoints) hurry(ctx context.Context, events int, impatience time.Duration) error {
	got, since := e.unreliable.got()
	if got >= events || time.Since(since) < impatience {
		return nil
	}
	for _, enabled := range []bool{false, true} {
		if _, err := e.desk.Webhooks.Update(ctx, e.unreliable.id, client.WebhookUpdate{Enabled: &enabled}); err != nil {
			return fmt.Errorf("disable and enable the unreliable endpoint: %w", err)
		}
	}
	e.hurried++
	e.unreliable.wake()
	return nil
}
