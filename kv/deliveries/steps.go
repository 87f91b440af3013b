package deliveries

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/node/store"
)

const (
	// stepOps and stepBytes bound one transaction of a checkpoint. etcd takes 128
	// operations and 1.5 MiB; one operation is the progress.
	stepOps   = etcd.MaxOps - 1
	stepBytes = 512 << 10
)

// checkpointStep is one transaction of a checkpoint. Each transaction writes the progress as it is afterward. So
// wherever a checkpoint stops, the counts are right, and a holder that resumes at the place misses no message.
type checkpointStep struct {
	ops           []clientv3.Op
	bytes         int
	progress      layout.Progress
	becamePending []string // messages that are pending afterward
	endedPending  []string // messages that are no longer pending afterward
}

// stepsOf lays out a checkpoint in transactions.
type stepsOf struct {
	holder *holder
	steps  []checkpointStep
	next   layout.Progress // the progress after the last of steps
}

// step begins a transaction.
func (l *stepsOf) step() *checkpointStep {
	l.next.Number++
	l.steps = append(l.steps, checkpointStep{})
	return &l.steps[len(l.steps)-1]
}

// room returns the transaction that takes more operations.
func (l *stepsOf) room(ops, bytes int) *checkpointStep {
	if n := len(l.steps); n > 0 {
		if last := &l.steps[n-1]; len(last.ops)+ops <= stepOps && last.bytes+bytes <= stepBytes {
			return last
		}
	}
	return l.step()
}

func (s *checkpointStep) put(key string, value []byte) {
	s.ops = append(s.ops, clientv3.OpPut(key, string(value), clientv3.WithPrevKV()))
	s.bytes += len(key) + len(value)
}

func (s *checkpointStep) remove(key string) {
	s.ops = append(s.ops, clientv3.OpDelete(key, clientv3.WithPrevKV()))
	s.bytes += len(key)
}

// layOut lays out a checkpoint.
func (h *holder) layOut(ctx context.Context, done *store.Checkpoint) ([]checkpointStep, error) {
	if !h.resumed {
		if _, err := h.resume(ctx); err != nil {
			return nil, err
		}
	}
	changes := changesOf(done)
	dead, err := h.areDead(ctx, changes)
	if err != nil {
		return nil, err
	}
	l := &stepsOf{holder: h, next: h.stored}
	for _, page := range layout.PagesOf(done.Delivered) {
		l.addPage(page)
	}
	for i := range changes {
		_, pending := h.pending[changes[i].delivery.EventID]
		l.addChange(&changes[i], pending, dead[changes[i].delivery.EventID])
	}
	jobs, bytes := h.jobsOf(done)
	last := l.room(len(jobs), bytes)
	for key, job := range jobs {
		if job == nil {
			last.remove(key)
		} else {
			last.put(key, job)
		}
	}
	l.close()
	counted := l.next.Progress
	l.next.Progress, l.next.Begun = done.Progress, true
	l.next.Progress.Pending, l.next.Progress.Dead = counted.Pending, counted.Dead
	last.progress = l.next
	return l.steps, nil
}

// jobsOf returns the changes of the keys of replays, and their bytes. One checkpoint may advance a replay several times
// and end it; a transaction writes each key once.
func (h *holder) jobsOf(done *store.Checkpoint) (jobs map[string][]byte, bytes int) {
	jobs = make(map[string][]byte)
	for i := range done.PutJobs {
		jobs[keyspace.ReplayKey(h.endpoint, done.PutJobs[i].ID)] = layout.EncodeReplay(h.owner, &done.PutJobs[i])
	}
	for _, id := range done.EndJobs {
		jobs[keyspace.ReplayKey(h.endpoint, id)] = nil
	}
	for key, job := range jobs {
		bytes += len(key) + len(job)
	}
	return jobs, bytes
}

// close sets the progress as it is after the transaction that is being filled.
func (l *stepsOf) close() {
	if n := len(l.steps); n > 0 {
		l.steps[n-1].progress = l.next
	}
}

// addPage puts a page of the log, and removes the pages beyond the limit. Each page has a transaction of its own,
// since a transaction can't both put and remove the same page.
func (l *stepsOf) addPage(page layout.LoggedPage) {
	l.close()
	step, log := l.step(), l.next.Log
	step.put(keyspace.PageKey(l.holder.endpoint, log.Next()), page.Value)
	l.next.Log = log.With(page.Count)
	if kept := l.next.Log.First; kept > log.First {
		step.ops = append(step.ops, clientv3.OpDelete(keyspace.PageKey(l.holder.endpoint, log.First),
			clientv3.WithRange(keyspace.PageKey(l.holder.endpoint, kept)), clientv3.WithPrevKV()))
	}
	l.close()
}

// messageChange is the state of a message after a checkpoint.
type messageChange struct {
	delivery *store.Delivery
	status   store.DeliveryStatus
}

// changesOf returns the state of each message after a checkpoint. For a message in several lists, delivered goes
// before dead, and dead before pending.
func changesOf(done *store.Checkpoint) []messageChange {
	var changes []messageChange
	places := make(map[string]int)
	add := func(messages []store.Delivery, status store.DeliveryStatus) {
		for i := range messages {
			d := &messages[i]
			if at, is := places[d.EventID]; is {
				changes[at] = messageChange{d, status}
				continue
			}
			places[d.EventID] = len(changes)
			changes = append(changes, messageChange{d, status})
		}
	}
	add(done.Pending, store.DeliveryPending)
	add(done.Dead, store.DeliveryDead)
	add(done.Delivered, store.DeliveryDelivered)
	return changes
}

// addChange writes the new state of a message, given its earlier state.
func (l *stepsOf) addChange(c *messageChange, wasPending, wasDead bool) {
	event, endpoint := c.delivery.EventID, l.holder.endpoint
	if c.status == store.DeliveryDelivered && !wasPending && !wasDead {
		return // the log has it
	}
	var value []byte
	if c.status != store.DeliveryDelivered {
		value = layout.EncodeDelivery(c.delivery)
	}
	l.close()
	step := l.room(2, len(value)+2*len(keyspace.DeadKey(endpoint, event)))
	switch c.status {
	case store.DeliveryPending:
		step.put(keyspace.PendingKey(endpoint, event), value)
		step.becamePending = append(step.becamePending, event)
	case store.DeliveryDead:
		step.put(keyspace.DeadKey(endpoint, event), value)
	}
	counts := &l.next.Progress
	if wasPending && c.status != store.DeliveryPending {
		step.remove(keyspace.PendingKey(endpoint, event))
		step.endedPending = append(step.endedPending, event)
		counts.Pending--
	} else if !wasPending && c.status == store.DeliveryPending {
		counts.Pending++
	}
	if wasDead && c.status != store.DeliveryDead {
		step.remove(keyspace.DeadKey(endpoint, event))
		counts.Dead--
	} else if !wasDead && c.status == store.DeliveryDead {
		counts.Dead++
	}
	l.close()
}

// areDead returns which messages were given up before. If the endpoint has no dead message, which is the rule, areDead
// makes no request.
func (h *holder) areDead(ctx context.Context, changes []messageChange) (map[string]bool, error) {
	dead := make(map[string]bool)
	if h.stored.Progress.Dead == 0 {
		return dead, nil
	}
	for some := range slices.Chunk(changes, etcd.MaxOps) {
		gets := make([]clientv3.Op, len(some))
		for i := range some {
			gets[i] = clientv3.OpGet(keyspace.DeadKey(h.endpoint, some[i].delivery.EventID), clientv3.WithKeysOnly())
		}
		response, err := h.worker.store.etcd.Txn(ctx, "read_dead", nil, gets, nil)
		if err != nil {
			return nil, etcd.Unavailable(err)
		}
		for i := range some {
			if etcd.First(response.Responses, i) != nil {
				dead[some[i].delivery.EventID] = true
			}
		}
	}
	return dead, nil
}
