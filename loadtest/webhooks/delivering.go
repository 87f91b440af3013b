package main

import (
	"context"
	"fmt"
	"time"

	"licet/client"
	"licet/loadtest/rig"
)

// hopeless is how long nothing may be delivered before missing events count as lost: many
// times as long as the lease of a killed node lasts.
const hopeless = 90 * time.Second

// deliver waits until all events are delivered and the hanging endpoint was called, while nodes are killed. If nothing
// comes any more, deliver returns too: the audit then names the missing events.
func (s *scene) deliver(ctx context.Context) error {
	live := 2
	all := live * s.plan.events
	begun := int(s.delivered.Load())
	kills := s.cfg.Kills - s.cfg.Kills/2
	show := s.Progress.Long(all-begun, "%d deliveries are left, while nodes are killed %d times", all-begun, kills)
	for before, since := begun, time.Now(); ; {
		now := int(s.delivered.Load())
		show(now - begun)
		if now > before {
			before, since = now, time.Now()
		}
		// The worker that holds the hanging endpoint may be killed before its first call. Then another worker calls
		// the endpoint once the lease has expired.
		done := now >= all && s.hanging.figures().calls > 0
		if done || time.Since(since) > hopeless {
			return ctx.Err()
		}
		if s.late < kills && now-begun >= (s.late+1)*(all-begun)/(kills+1) {
			s.late++
			if err := s.Havoc.Strike(ctx); err != nil {
				return err
			}
		}
		if err := s.hurry(ctx); err != nil {
			return err
		}
		if rig.Rest(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("of %d deliveries %d have come: %w", all, now, context.Cause(ctx))
		}
	}
}

// hurry disables the unreliable endpoint and enables it again when no delivery has come
// for a while, as people do who have repaired their receiver: an event that has failed
// twice waits five minutes, and then half an hour.
func (s *scene) hurry(ctx context.Context) error {
	got, since := s.unreliable.got()
	if got >= s.plan.events || time.Since(since) < s.cfg.impatience {
		return nil
	}
	for _, enabled := range []bool{false, true} {
		if _, err := s.shop.desk.UpdateWebhook(ctx, s.unreliable.id,
			client.WebhookUpdate{Enabled: &enabled}); err != nil {
			return fmt.Errorf("disable and enable the unreliable endpoint: %w", err)
		}
	}
	s.hurried++
	s.unreliable.wake()
	return nil
}
