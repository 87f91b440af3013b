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
	Online bool // the service has answered; false: the stored documents have decided
}

// hastyTimeout bounds a request of a program that may run anyway.
const hastyTimeout = 5 * time.Second

// Check reports whether the program may run. It uses the receipt that is stored, asks the service when a receipt, a
// list or a set of keys is due, and keeps to the offline rules where no answer comes. It fails only if the store does.
func (l *License) Check(ctx context.Context) (check Check, err error) {
	err = l.inTurn(func(s *state) error {
		held, why := l.stored(s)
		asked, failed := l.refresh(ctx, s, held, why)
		if asked {
			held, why = l.stored(s)
		}
		check.Online = asked && (failed == nil || isVerdict(failed))
		if held != nil {
			check.Allowed, check.Receipt = true, held.Receipt
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
	held, _, err := l.verifier.Verify(s.Documents, s.Seen, l.now())
	return held, err
}

// refresh renews the documents that are due, and reports whether it has asked the service. held is the stored receipt,
// which allows the program to run anyway; nil: there is no good one, for the reason why.
func (l *License) refresh(ctx context.Context, s *state, held *receipt.Verified, why error) (asked bool, err error) {
	if held == nil {
		return l.regain(ctx, s, why)
	}
	ctx, stop := context.WithTimeout(ctx, hastyTimeout)
	defer stop()
	now := l.now().Unix()
	online := s.LicenseKey != "" // else Import has taken the receipt
	if online && now >= (held.IssuedAt+held.ExpiresAt)/2 {
		_, err := l.validate(ctx, l.hasty, s)
		return true, err
	}
	d := s.Documents
	if now >= (held.Keys.IssuedAt+held.Keys.ExpiresAt)/2 {
		asked = true
		if d.Keys, err = l.keySet(ctx, l.hasty); err != nil {
			return true, err
		}
	}
	if age := held.RevocationsAge; age > 0 && now >= held.Known+age/2 && now >= s.Lists.Until {
		asked = true
		if d.Revocations, err = l.revocations(ctx, l.hasty, s, s.Documents.Revocations); err != nil {
			return true, err
		}
	}
	if !asked {
		return false, nil
	}
	var refused *receipt.Error
	if _, err = l.accept(ctx, l.hasty, s, d, ""); online && errors.As(err, &refused) {
		_, err = l.validate(ctx, l.hasty, s) // a newer receipt may be good
	}
	return true, err
}

// regain asks the service for a good receipt; if that has no answer, or the receipt came in a file, for a newer list of
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
	ctx, stop := context.WithTimeout(ctx, hastyTimeout)
	defer stop()
	d, before := s.Documents, err
	if d.Revocations, err = l.revocations(ctx, l.hasty, s, d.Revocations); err == nil {
		_, err = l.accept(ctx, l.hasty, s, d, "")
	}
	if err != nil && before != nil {
		err = before
	}
	return true, err
}

// accept verifies documents and keeps them. If the set of keys or a list is refused, accept gets another one, once.
func (l *License) accept(
	ctx context.Context, api *client.Client, s *state, d receipt.Documents, nonce string,
) (*receipt.Verified, error) {
	verifier := l.verifier
	verifier.Nonce = nonce
	var keys, lists bool // were asked for
	for {
		held, seen, err := verifier.Verify(d, s.Seen, l.now())
		var refused *receipt.Error
		switch {
		case err == nil:
			s.Documents, s.Seen = d, seen
			return held, nil
		case !errors.As(err, &refused):
			return nil, err
		case !keys && (refused.Document == receipt.KeySetDocument || refused.Reason == receipt.UnknownKey):
			keys = true
			if d.Keys, err = l.keySet(ctx, api); err != nil {
				return nil, err
			}
		case !lists && refused.Document == receipt.RevocationsDocument:
			lists = true
			if d.Revocations, err = l.revocations(ctx, api, s, nil); err != nil {
				return nil, err
			}
		default:
			// Newer keys and lists may rule out the stored receipt, too: they are kept, so that this holds offline.
			if refused.Document == receipt.ReceiptDocument || seen != s.Seen {
				d.Receipt = s.Documents.Receipt
				s.Documents, s.Seen = d, seen
			}
			return nil, err
		}
	}
}

func (l *License) keySet(ctx context.Context, api *client.Client) (string, error) {
	d, err := api.ReceiptKeySet(ctx, l.cfg.AccountID, l.cfg.Mode)
	return d.Text, err
}

// revocations gets the increment since the whole list that is stored, or a whole list. It returns the lists to keep.
func (l *License) revocations(
	ctx context.Context, api *client.Client, s *state, stored []string,
) ([]string, error) {
	var after int64
	var etag string
	if len(stored) > 0 {
		after, etag = peek(stored[0]).Epoch, s.Lists.ETag
	}
	d, err := api.Revocations(ctx, l.cfg.AccountID, l.cfg.Mode, after, etag)
	if err != nil {
		return nil, err
	}
	s.Lists = listState{ETag: d.ETag, Until: l.now().Add(d.MaxAge).Unix()}
	switch {
	case d.Unchanged:
		return stored, nil
	case after > 0 && peek(d.Text).After == after:
		return []string{stored[0], d.Text}, nil
	}
	return []string{d.Text}, nil
}

// peek returns the content of a list, unverified: only to know which list it is.
func peek(list string) (content receipt.Revocations) {
	receipt.Peek(list, &content)
	return content
}
