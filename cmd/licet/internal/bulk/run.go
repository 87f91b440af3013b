package bulk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"licet/client"
)

// run is an import at work.
type run struct {
	*Import
	input   *os.File
	journal *journal
	id      string
	states  []state // the dispatcher's, but for rows that a worker has
	before  int

	mu       sync.Mutex
	results  *results
	licenses int // granted
	done     int
	stopped  error // why no more rows are sent
}

// finish sends what is not done and puts the results in order.
func (r *run) finish(ctx context.Context) (ImportSummary, error) {
	if err := r.arrange(nil); err != nil {
		return r.summary(), err
	}
	if r.before == len(r.states) {
		return r.summary(), nil
	}
	var err error
	if r.results, err = appendResults(r.Results); err != nil {
		return r.summary(), err
	}
	err = r.sendAll(ctx)
	err = errors.Join(err, r.journal.syncAll(), r.results.close(), r.arrange(r.Failure))
	sum := r.summary()
	if err != nil {
		err = &BrokenOffError{fmt.Sprintf("with %d of %s done", sum.Done(), counted(int64(sum.Rows), "row")), err}
	}
	return sum, err
}

// errInputChanged tells that somebody has written to the input meanwhile.
var errInputChanged = errors.New("the input was changed while it was imported")

// sendAll reads the input row by row, and has the workers send those that are to
// be sent.
func (r *run) sendAll(ctx context.Context) error {
	rows, problems, err := r.rows(r.input)
	if err != nil || len(problems) > 0 {
		return errors.Join(errInputChanged, err)
	}
	r.done = r.before
	r.progress()
	work := make(chan *row)
	stop := make(chan struct{})
	var workers, halt = sync.WaitGroup{}, sync.Once{}
	for range r.Parallel {
		workers.Go(func() {
			for row := range work {
				if err := r.send(ctx, row); err != nil {
					r.mu.Lock()
					r.stopped = err
					r.mu.Unlock()
					halt.Do(func() { close(stop) })
				}
			}
		})
	}
	err = r.dispatch(ctx, rows, work, stop)
	close(work)
	workers.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, r.stopped)
}

func (r *run) dispatch(ctx context.Context, rows *rules, work chan<- *row, stop <-chan struct{}) error {
	for {
		next, problems, err := rows.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if next.index >= len(r.states) || r.states[next.index].hash != shortHash(next) || len(problems) > 0 {
			return errInputChanged
		}
		if s := &r.states[next.index]; s.done() || s.lost(r.Now()) {
			continue
		}
		select {
		case work <- next:
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// send does what one row says. An error means that no more rows are to be sent.
func (r *run) send(ctx context.Context, row *row) error {
	if row.licenseKey != "" {
		return r.change(ctx, row)
	}
	return r.grant(ctx, row)
}

// grant grants a row's licenses. The Idempotency-Key is on disk before it is
// used, so that the next run uses the same.
func (r *run) grant(ctx context.Context, row *row) error {
	s := &r.states[row.index]
	try, first := s.next(r.Now())
	intent := entry{Row: row.index + 1, Try: try, At: first.UTC()}
	at, end, err := r.journal.add(intent)
	if err == nil {
		err = r.journal.sync(end)
	}
	if err == nil {
		err = s.apply(intent, at)
	}
	if err != nil {
		return err
	}
	var answer client.Response
	made, err := r.Service.GrantLicenses(ctx, row.grant, client.IdempotencyKey(r.key(row, try)), client.Record(&answer))
	if err != nil {
		e, stop := judge(err, answer.Tries)
		if e.Result == "" || ctx.Err() != nil {
			return err // it stays in doubt
		}
		return errors.Join(r.record(row, e), stop)
	}
	e := entry{Result: granted}
	for i := range made {
		e.Licenses = append(e.Licenses, made[i].LicenseKey)
	}
	return r.record(row, e)
}

// key is the Idempotency-Key of a row: the same for the same row of the same
// import, and for no other.
func (r *run) key(row *row, try int) string {
	return fmt.Sprintf("licet-import-%s-%d-%s-%d", r.id, row.index+1, hex.EncodeToString(row.hash[:8]), try)
}

// judge tells what a failed grant means for its row, and whether it is of use to
// send others. Only what the service says of the row itself is a refusal: after
// anything else an earlier try of the same request may have done it.
func judge(err error, tries int) (e entry, stop error) {
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Code == 0 {
		return entry{}, err // no answer, or not the service's
	}
	caller := answer.Status == 401 || answer.Reason == client.ReasonForbidden
	switch {
	case answer.Retryable || caller:
		if notDone := answer.Status == 429 || answer.Status == 503 || caller; notDone && tries == 1 {
			return entry{Result: refused, Error: err.Error()}, err
		}
		return entry{}, err
	case answer.Status >= 500 || answer.Reason == client.ReasonIdempotencyKeyReused:
		return entry{Result: unanswered, Error: err.Error()}, nil
	}
	kept := answer.Status == 403 || answer.Status == 409
	return entry{Result: refused, Kept: kept, Error: err.Error()}, nil
}

// change changes a license as its row says, as far as it is not so already. It
// needs no Idempotency-Key: done twice it is the same. The renewal comes first,
// since that is what a revoked license refuses.
func (r *run) change(ctx context.Context, row *row) error {
	l, err := r.Service.License(ctx, row.licenseKey)
	if err != nil {
		return r.notChanged(ctx, row, "", err)
	}
	e := entry{Result: unchanged, Licenses: []string{l.LicenseKey}}
	half := ""
	if end := row.expiresAt; !end.IsZero() && !end.Equal(l.ExpiresAt) {
		if _, err := r.Service.RenewLicense(ctx, row.licenseKey, client.Renewal{ExpiresAt: end}); err != nil {
			return r.notChanged(ctx, row, "", err)
		}
		e.Result, half = changed, "expires_at was changed, but not the rest: "
	}
	var update client.LicenseUpdate
	if row.maxDevices != nil && *row.maxDevices != l.MaxDevices {
		update.MaxDevices = row.maxDevices
	}
	differs, err := row.metadata.changes(l.Metadata)
	if err != nil {
		return err
	}
	if differs {
		update.Metadata = row.metadata.raw()
	}
	if differs || update.MaxDevices != nil {
		if _, err := r.Service.UpdateLicense(ctx, row.licenseKey, update); err != nil {
			return r.notChanged(ctx, row, half, err)
		}
		e.Result = changed
	}
	return r.record(row, e)
}

// notChanged notes why a license could not be changed, if that is the row's fault.
func (r *run) notChanged(ctx context.Context, row *row, half string, err error) error {
	var answer *client.Error
	if ctx.Err() != nil || !errors.As(err, &answer) || answer.Code == 0 || answer.Retryable {
		return err
	}
	if noted := r.record(row, entry{Result: refused, Error: half + err.Error()}); noted != nil {
		return noted
	}
	if answer.Status == 401 || answer.Reason == client.ReasonForbidden {
		return err
	}
	return nil
}

// record notes what has become of a row: in the journal, and for people in the
// results.
func (r *run) record(row *row, e entry) error {
	e.Row = row.index + 1
	at, _, err := r.journal.add(e)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.states[row.index]
	if err := s.apply(e, at); err != nil {
		return err
	}
	if e.Result == granted {
		r.licenses += len(e.Licenses)
	}
	r.done++
	r.progress()
	return r.results.add(resultRows(row, e), r.Now())
}

func (r *run) progress() {
	if r.Progress != nil {
		r.Progress(int64(r.done), int64(len(r.states)))
	}
}

// summary counts the rows by what has become of them.
func (r *run) summary() ImportSummary {
	sum := ImportSummary{Rows: len(r.states), Before: r.before, Licenses: r.licenses, Results: r.Results}
	counts := map[status]*int{
		open: &sum.Open, inDoubt: &sum.Unanswered, failed: &sum.Refused,
		wasGranted: &sum.Granted, wasChanged: &sum.Changed, wasUnchanged: &sum.Unchanged, wasSkipped: &sum.Skipped,
	}
	for i := range r.states {
		*counts[r.states[i].status]++
	}
	return sum
}
