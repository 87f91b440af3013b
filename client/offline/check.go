package offline

import (
	"context"
	"errors"
	"time"

	"licet/client"
	"licet/receipt"
)

// Check says whether the program may run.
type Check struct {
	Allowed bool
	Receipt *receipt.Receipt // the receipt that allows it
	// Reason says why not: the reason of a [receipt.Error], a [client.Error] or a [NotValidError], or not_activated,
	// no_receipt or unreachable.
	Reason string
	// Online: the service has sent what was due, or has said that the license is not valid; false: the stored documents
	// have decided, also if the service has refused the request for another reason, such as its rate.
	Online bool
}

// hastyTimeout bounds a request of a program that may run anyway.
const hastyTimeout = 5 * time.Second

// Check reports whether the program may run. It uses the receipt that is stored, asks the service when a receipt, a
// list or a set of keys is due, and keeps to the offline rules where no answer comes. It fails only if the store does.
func (l *License) Check(ctx context.Context) (check Check, err error) {
	err = l.locked(func(s *state) error {
		verified, why := l.stored(s)
		asked, failed := l.refresh(ctx, s, verified, why)
		if asked {
			verified, why = l.stored(s)
		}
		check.Online = asked && (failed == nil || isVerdict(failed))
		if verified != nil {
			check.Allowed, check.Receipt = true, verified.Receipt
			return nil
		}
		check.Reason = reasonOf(why)
		if failed != nil && (check.Reason == notActivated || reasonOf(failed) != unreachable) {
			check.Reason = reasonOf(failed)
		}
		return nil
	})
	return check, err
}

// The reasons besides those of the service and of package receipt.
const (
	notActivated = "not_activated"
	unreachable  = "unreachable"
)

var errNotActivated = &NotValidError{notActivated}

// reasonOf returns the reason of an error as a word.
func reasonOf(err error) string {
	var refused *receipt.Error
	var answered *client.Error
	var no *NotValidError
	switch {
	case errors.As(err, &refused):
		return string(refused.Reason)
	case errors.As(err, &answered):
		return answered.Reason
	case errors.As(err, &no):
		return no.Reason
	case errors.Is(err, ErrNoReceipt):
		return "no_receipt"
	}
	return unreachable
}

// stored verifies the stored documents.
func (l *License) stored(s *state) (*receipt.Verified, error) {
	if s.Documents.Receipt == "" {
		return nil, errNotActivated
	}
	verified, _, err := l.verifier.Verify(s.Documents, s.Seen, l.now())
	return verified, err
}

// refresh renews the documents that are due, and reports whether it has asked the service. verified is the stored
// receipt, which allows the program to run even if the service does not answer. If verified is nil, why says what is
// wrong with the stored receipt.
func (l *License) refresh(
	ctx context.Context, s *state, verified *receipt.Verified, why error,
) (asked bool, err error) {
	if verified == nil {
		return l.regain(ctx, s, why)
	}
	now, age := l.now().Unix(), verified.RevocationsAge
	online := s.LicenseKey != "" // else Import has taken the receipt
	// In its grace, the program runs only because no answer has come: one answer of two is enough to end that.
	inGrace := age > 0 && now >= verified.Known+age
	if online && now >= (verified.IssuedAt+verified.ExpiresAt)/2 {
		if err = l.replace(ctx, s); err == nil || isVerdict(err) || !inGrace {
			return true, err
		}
		return true, l.update(ctx, s, false, true)
	}
	keysDue := verified.Keys.ExpiresAt < verified.ExpiresAt
	listDue := inGrace || age > 0 && now >= verified.Known+age/2 && !s.Lists.fresh(now, age)
	if !keysDue && !listDue {
		return false, nil
	}
	err = l.update(ctx, s, keysDue, listDue)
	var refused *receipt.Error
	if err != nil && online && (inGrace || errors.As(err, &refused)) {
		err = l.replace(ctx, s) // a newer receipt may be good
	}
	return true, err
}

// fresh reports whether the max-age of the last list has not ended. The service sends at most half of
// revocation_max_age: if more remains, the device's clock was ahead, or another server has answered, and the max-age
// does not count.
func (s listState) fresh(now, age int64) bool { return now < s.Until && s.Until <= now+age/2 }

// replace asks the service for a newer receipt, for a program that may run anyway.
func (l *License) replace(ctx context.Context, s *state) error {
	ctx, stop := context.WithTimeout(ctx, hastyTimeout)
	defer stop()
	_, err := l.validate(ctx, l.hasty, s)
	return err
}

// update gets the set of keys, the list of revocations, or both. It keeps them if the stored receipt is good with them.
func (l *License) update(ctx context.Context, s *state, keys, list bool) (err error) {
	ctx, stop := context.WithTimeout(ctx, hastyTimeout)
	defer stop()
	next := *s
	if keys {
		if next.Documents.Keys, err = l.keySet(ctx, l.hasty); err != nil {
			return err
		}
	}
	if list {
		if err = l.revocations(ctx, l.hasty, &next, s.Documents.Revocations); err != nil {
			return err
		}
	}
	_, err = l.accept(ctx, l.hasty, s, next, "")
	return err
}

// regain asks the service for a good receipt; if that brings none, or the receipt came in a file, for a newer list of
// revocations, where only the list is too old. A cache may have the list although the service can't be reached.
func (l *License) regain(ctx context.Context, s *state, why error) (asked bool, err error) {
	if s.LicenseKey != "" {
		if _, err = l.validate(ctx, l.patient, s); err == nil || isVerdict(err) {
			return true, err
		}
		asked = true
	}
	var refused *receipt.Error
	if !errors.As(why, &refused) || refused.Reason != receipt.Stale {
		return asked, err
	}
	if failed := l.update(ctx, s, false, true); failed == nil || err == nil {
		err = failed
	}
	return true, err
}

// accept verifies the documents of next and keeps them in s. If the set of keys or a list is refused, accept gets
// another one, once.
func (l *License) accept(
	ctx context.Context, api *client.Client, s *state, next state, nonce string,
) (*receipt.Verified, error) {
	verifier := l.verifier
	verifier.Nonce = nonce
	var keys, lists bool // were asked for
	for {
		verified, seen, err := verifier.Verify(next.Documents, s.Seen, l.now())
		var refused *receipt.Error
		switch {
		case err == nil:
			s.Documents, s.Lists, s.Seen = next.Documents, next.Lists, seen
			return verified, nil
		case !errors.As(err, &refused):
			return nil, err
		case !keys && (refused.Document == receipt.KeySetDocument || refused.Reason == receipt.UnknownKey):
			keys = true
			if next.Documents.Keys, err = l.keySet(ctx, api); err != nil {
				return nil, err
			}
		case !lists && refused.Document == receipt.RevocationsDocument:
			lists = true
			if err = l.revocations(ctx, api, &next, nil); err != nil {
				return nil, err
			}
		default:
			// Newer keys and lists may rule out the stored receipt, too: they are kept, so that this holds offline.
			if refused.Document == receipt.ReceiptDocument || refused.Reason == receipt.Stale {
				next.Documents.Receipt = s.Documents.Receipt
				s.Documents, s.Lists, s.Seen = next.Documents, next.Lists, seen
			}
			return nil, err
		}
	}
}

func (l *License) keySet(ctx context.Context, api *client.Client) (string, error) {
	d, err := api.ReceiptKeySet(ctx, l.cfg.AccountID, l.cfg.Mode)
	return d.Text, err
}

// revocations gets the increment since the whole list that is stored, or a whole list. It puts the lists to keep, and
// what the answer says about them, into next.
func (l *License) revocations(ctx context.Context, api *client.Client, next *state, stored []string) error {
	after, etag := position(stored), ""
	if after > 0 {
		etag = next.Lists.ETag
	}
	d, err := api.Revocations(ctx, l.cfg.AccountID, l.cfg.Mode, after, etag)
	if err != nil {
		return err
	}
	next.Lists = listState{ETag: d.ETag, Until: l.now().Add(d.MaxAge).Unix()}
	switch from := peek(d.Text).After; {
	case d.Unchanged:
		next.Documents.Revocations = stored
	case from > 0 && from <= after:
		next.Documents.Revocations = []string{stored[0], d.Text}
	default:
		next.Documents.Revocations = []string{d.Text}
	}
	return nil
}

// longIncrement is the length, in bytes, above which an increment is replaced by the whole list: each increment since
// the same whole list is at least as long.
const longIncrement = 256 << 10

// position returns the position that the next increment should continue; 0: the whole list is wanted.
func position(stored []string) int64 {
	if len(stored) == 0 || len(stored) > 1 && len(stored[1]) > longIncrement {
		return 0
	}
	return peek(stored[0]).Epoch
}

// peek returns the content of a list, unverified: only to know which list it is.
func peek(list string) (content receipt.Revocations) {
	receipt.Peek(list, &content)
	return content
}
