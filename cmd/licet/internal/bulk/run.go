package bulk

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"licet/client"
)

// run is the state of a running import.
type run struct {
	*Import
	input   *os.File
	journal *journal
	id      string
	states  []state        // owned by unsent, except for rows that are being sent
	ids     map[int]string // the ids of licenses that rows name by their keys, as far as they were looked up
	before  int

	mu       sync.Mutex
	results  *results
	licenses int // granted
	done     int
}

// finish sends the rows that are not done and sorts the results.
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

// errInputChanged reports that the input changed during the import.
var errInputChanged = errors.New("the input changed during the import")

// sendAll reads the input row by row and sends the rows that are not done.
func (r *run) sendAll(ctx context.Context) error {
	rows, problems, err := r.rows(r.input)
	if err != nil || len(problems) > 0 {
		return errors.Join(errInputChanged, err)
	}
	r.done = r.before
	r.progress()
	failed := inParallel(ctx, r.Parallel, r.unsent(rows, &err), func(row *row) error { return r.send(ctx, row) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, failed)
}

// unsent returns the rows that are not done. It ends at a row that it can't read, and stores the error in failed.
func (r *run) unsent(rows *rules, failed *error) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for {
			next, problems, err := rows.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				*failed = err
				return
			}
			if next.index >= len(r.states) || r.states[next.index].hash != shortHash(next) || len(problems) > 0 {
				*failed = errInputChanged
				return
			}
			if s := &r.states[next.index]; !s.done() && !s.lost(r.Now()) && !yield(next) {
				return
			}
		}
	}
}

// send executes a row. An error ends the run.
func (r *run) send(ctx context.Context, row *row) error {
	if row.changes() {
		return r.change(ctx, row)
	}
	return r.grant(ctx, row)
}

// grant grants the licenses of a row. It writes the Idempotency-Key to disk before it sends the request, so that the
// next run uses the same key.
func (r *run) grant(ctx context.Context, row *row) error {
	s := &r.states[row.index]
	unknown := s.status == inDoubt && s.old(r.Now())
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
	made, err := r.Service.Licenses.Grant(ctx, row.grant,
		client.IdempotencyKey(r.key(row, try)), client.Record(&answer))
	if unknown && client.HasReason(err, client.ReasonExternalKeyInUse) {
		found, failed := r.byExternalKey(ctx, row, first)
		if failed != nil {
			return r.unfinished(ctx, row, failed)
		}
		if found != nil {
			made, err = found, nil
		}
	}
	if client.HasReason(err, client.ReasonExternalKeyInUse) {
		return r.recordExisting(ctx, row)
	}
	if err != nil {
		e, stop := resultOf(err, answer.Tries)
		if e.Result == "" || ctx.Err() != nil {
			return r.unfinished(ctx, row, err)
		}
		return errors.Join(r.record(row, e), stop)
	}
	e := entry{Result: granted}
	for i := range made {
		e.Licenses = append(e.Licenses, named(&made[i]))
	}
	if e.Error, err = r.complete(ctx, row, &made[0]); err != nil {
		return r.unfinished(ctx, row, err)
	}
	return r.record(row, e)
}

// unfinished records why a row is not done, unless the user has stopped the import, and returns the error, which ends
// the run. The next run sends the row again under the same Idempotency-Key, so that the row continues.
func (r *run) unfinished(ctx context.Context, row *row, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(r.record(row, entry{Result: unanswered, Error: err.Error()}), err)
}

// byExternalKey returns the license that the row's try, begun at first, has granted: the service may have forgotten the
// try's Idempotency-Key. byExternalKey returns none if the license with the external key is older than the try.
func (r *run) byExternalKey(ctx context.Context, row *row, first time.Time) ([]client.License, error) {
	found, err := r.withExternalKey(ctx, row)
	if err != nil || found[0].CreatedAt.Before(first.Add(-clockDifference)) {
		return nil, err
	}
	return found, nil
}

// withExternalKey returns the license with the external key of a row.
func (r *run) withExternalKey(ctx context.Context, row *row) ([]client.License, error) {
	found, err := r.Service.Licenses.List(ctx, client.LicenseFilter{ExternalKey: row.grant.ExternalKey},
		client.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found.Items) != 1 {
		return nil, errors.New("the service has the external key of a row, and does not list its license")
	}
	return found.Items, nil
}

// recordExisting records that another license has the external key of a row. The license stays as it is. If the row has
// a state or devices that the license lacks, the result says so: an earlier import may have ended halfway, or the other
// service has changed the license since.
func (r *run) recordExisting(ctx context.Context, row *row) error {
	e := entry{Result: exists}
	if row.state != "" || len(row.devices) > 0 {
		found, err := r.withExternalKey(ctx, row)
		if err != nil {
			return r.unfinished(ctx, row, err)
		}
		if lacks := lacking(row, &found[0]); lacks != "" {
			e.Error = "a license with this external_key exists and stays as it is, but it " + lacks
		}
	}
	return r.record(row, e)
}

// lacking says which state and devices of a row a license lacks; "": none. It does not know the devices of a license
// that has more than a list shows.
func lacking(row *row, l *client.License) string {
	var lacks []string
	if row.state != "" && row.state != l.Status {
		lacks = append(lacks, "is not "+row.state)
	}
	for _, device := range row.devices {
		bound := func(d client.Device) bool { return d.DeviceID == device }
		if l.DevicesNextCursor == "" && !slices.ContainsFunc(l.Devices, bound) {
			lacks = append(lacks, fmt.Sprintf("does not have the device %q", device))
		}
	}
	return strings.Join(lacks, ", ")
}

// complete binds the devices of a row to its license, and then gives the license its state. Each step has the same
// effect if it is repeated. complete returns what the service has refused.
func (r *run) complete(ctx context.Context, row *row, l *client.License) (refused string, err error) {
	var left []string
	note := func(what string, err error) error {
		var answer *client.Error
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, !aboutTheRow(err), !errors.As(err, &answer):
			return fmt.Errorf("the license was granted, but %s: %w", what, err)
		}
		left = append(left, what+": "+answer.Message)
		return nil
	}
	if l.Status == Suspended || l.Status == Revoked {
		return "", nil // by an earlier run, which had bound the devices before
	}
	for _, device := range row.devices {
		_, err := r.Service.Activate(ctx, client.Activation{LicenseKey: l.LicenseKey, DeviceID: device})
		if client.HasReason(err, client.ReasonLicenseExpired) {
			left = append(left, "no device was bound: the license has expired")
			break
		}
		if err := note(fmt.Sprintf("device %q was not bound", device), err); err != nil {
			return "", err
		}
	}
	switch row.state {
	case Suspended:
		_, err = r.Service.Licenses.Suspend(ctx, l.ID, row.reason)
	case Revoked:
		_, err = r.Service.Licenses.Revoke(ctx, l.ID, row.reason)
	}
	err = note("the license was not "+row.state, err)
	return strings.Join(left, "; "), err
}

// key returns the Idempotency-Key of a row, which is unique to the row, the import and the try.
func (r *run) key(row *row, try int) string {
	return fmt.Sprintf("licet-import-%s-%d-%s-%d", r.id, row.index+1, hex.EncodeToString(row.hash[:8]), try)
}

// resultOf returns the result of a failed grant, or an error that ends the run. Only an answer about the row itself is
// a refusal: after any other failure an earlier try of the request may have succeeded.
func resultOf(err error, tries int) (e entry, stop error) {
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Code == 0 {
		return entry{}, err // no response, or not from the service
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

// change sets the values of a row that differ from the license. It is idempotent, so it needs no Idempotency-Key. The
// renewal comes first, because a revoked license refuses it. Proxies log URLs, so a license key is in at most one: in
// the lookup, if the row has no id. No route that takes a license key in its body answers with the id.
func (r *run) change(ctx context.Context, row *row) error {
	l, err := r.Service.Licenses.Get(ctx, cmp.Or(row.id, r.ids[row.index], row.licenseKey))
	if err != nil {
		return r.notChanged(ctx, row, "", err)
	}
	if row.id != "" && row.licenseKey != "" && row.licenseKey != l.LicenseKey {
		return r.record(row, entry{Result: refused, Error: "id and license_key disagree: the license with this id " +
			"has another license_key; if the license was reissued, empty license_key"})
	}
	e := entry{Result: unchanged, Licenses: []license{named(l)}}
	half := ""
	if end := row.expiresAt; !end.IsZero() && !end.Equal(l.ExpiresAt) {
		if _, err := r.Service.Licenses.Renew(ctx, l.ID, client.Renewal{ExpiresAt: end}); err != nil {
			return r.notChanged(ctx, row, "", err)
		}
		e.Result, half = changed, "expires_at was changed, but not the rest: "
	}
	update, err := row.update(l, r.Now())
	if err != nil {
		return err
	}
	if update.MaxDevices != nil || update.Metadata != nil || update.Entitlements != nil || update.BuyerEmail != nil ||
		update.CustomerReference != nil {
		if _, err := r.Service.Licenses.Update(ctx, l.ID, update); err != nil {
			return r.notChanged(ctx, row, half, err)
		}
		e.Result = changed
	}
	return r.record(row, e)
}

// notChanged records why a license was not changed, if the row is the reason.
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

// record writes the result of a row to the journal and to the results.
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

// summary counts the rows by their results.
func (r *run) summary() ImportSummary {
	sum := ImportSummary{Rows: len(r.states), Before: r.before, Licenses: r.licenses, Results: r.Results}
	counts := map[status]*int{
		open: &sum.Open, inDoubt: &sum.Unanswered, failed: &sum.Refused,
		wasGranted: &sum.Granted, wasChanged: &sum.Changed, wasUnchanged: &sum.Unchanged, existed: &sum.Existing,
		wasSkipped: &sum.Skipped,
	}
	for i := range r.states {
		*counts[r.states[i].status]++
	}
	return sum
}
