package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dunglas/httpsfv"
)

const (
	// Algorithm is what signatures are made with, as the parameter alg names it.
	Algorithm = "hmac-sha256"
	// MaxAge is how far the time that a signature was made at may lie from now,
	// in either direction: clocks differ.
	MaxAge = 300 * time.Second
	// maxSignatures bounds the work on one request. A client makes one, or two
	// while its secret is replaced; servers on the way may add theirs.
	maxSignatures = 8
)

// Key is what the signatures of one client are checked with.
type Key struct {
	ID      string   // the parameter keyid of the signatures that count
	Secrets []string // each of them is good; their text, not what it encodes, is the HMAC's key
}

// Verify tells what is wrong with the signature of a request, in words for
// whoever made it, or answers nil.
//
// Of several signatures those that carry the key's id count. There must be one,
// and all of them must be right: made with hmac-sha256 and one of the secrets,
// at most [MaxAge] before or after now, not expired, over at least @method,
// @target-uri and authorization, over content-digest where there is a body, and
// over idempotency-key in a POST. Those with another keyid are somebody else's,
// such as a server's on the way, and nothing is said about them.
func Verify(m *Message, key Key, now time.Time) error {
	inputs, err := m.dictionary("signature-input")
	if err != nil {
		return errors.New("header Signature-Input is not a dictionary of structured fields")
	}
	signatures, err := m.dictionary("signature")
	if err != nil {
		return errors.New("header Signature is not a dictionary of structured fields")
	}
	labels := inputs.Names()
	if len(labels) > maxSignatures {
		return fmt.Errorf("there are more than %d signatures", maxSignatures)
	}
	ours, digested := false, false
	for _, label := range labels {
		member, _ := inputs.Get(label)
		covered, isList := member.(httpsfv.InnerList)
		if !isList {
			return fmt.Errorf("%s in header Signature-Input is not a list of components in parentheses", label)
		}
		if id, _ := covered.Params.Get("keyid"); id != key.ID {
			continue
		}
		ours = true
		if err := m.verify(label, covered, signatures, key, now); err != nil {
			return fmt.Errorf("signature %s: %w", label, err)
		}
		digested = digested || covers(covered, fieldContentDigest)
	}
	if !ours {
		return fmt.Errorf("header Signature-Input has no signature with the keyid of the API key, %s", key.ID)
	}
	if digested {
		return m.checkDigest()
	}
	return nil
}

// verify checks one signature.
func (m *Message) verify(label string, covered httpsfv.InnerList, signatures *httpsfv.Dictionary, key Key, now time.Time) error {
	signature, ok := byteSequence(signatures, label)
	if !ok {
		return errors.New("header Signature has no byte sequence under its label")
	}
	if algorithm, given := covered.Params.Get("alg"); given && algorithm != Algorithm {
		return errors.New("its alg must be " + Algorithm)
	}
	if err := checkTime(covered.Params, now); err != nil {
		return err
	}
	for _, component := range m.demanded() {
		if !covers(covered, component) {
			return fmt.Errorf("it must cover %q", component)
		}
	}
	base, err := m.base(covered)
	if err != nil {
		return err
	}
	good := false
	for _, secret := range key.Secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(base)
		// In constant time, and whichever secret it is.
		good = hmac.Equal(mac.Sum(nil), signature) || good
	}
	if !good {
		// Clients mostly fail at the address, which they may know by another name.
		scheme, authority, _ := m.splitTarget()
		return fmt.Errorf("it is not that of this request to %s://%s under the API secret", scheme, authority)
	}
	return nil
}

// demanded lists what a signature of the request must cover.
func (m *Message) demanded() []string {
	names := make([]string, 0, 5)
	// Without authorization a signature could be sent along with another key.
	names = append(names, "@method", "@target-uri", "authorization")
	if len(m.Body) > 0 {
		names = append(names, fieldContentDigest)
	}
	if m.Method == "POST" {
		// It makes a replay within MaxAge harmless.
		names = append(names, "idempotency-key")
	}
	return names
}

func covers(covered httpsfv.InnerList, name string) bool {
	return slices.ContainsFunc(covered.Items, func(i httpsfv.Item) bool {
		return i.Value == name && len(i.Params.Names()) == 0
	})
}

// checkTime judges the parameters created, which is demanded, and expires.
func checkTime(params *httpsfv.Params, now time.Time) error {
	created, given := params.Get("created")
	at, isNumber := created.(int64)
	switch {
	case !given || !isNumber:
		return errors.New("it must say in created when it was made, in whole seconds since 1970")
	case now.Sub(time.Unix(at, 0)).Abs() > MaxAge:
		return fmt.Errorf("it was created more than %d seconds before or after now", int(MaxAge.Seconds()))
	}
	expires, given := params.Get("expires")
	if !given {
		return nil
	}
	until, isNumber := expires.(int64)
	switch {
	case !isNumber:
		return errors.New("its expires must be in whole seconds since 1970")
	case now.After(time.Unix(until, 0)):
		return errors.New("it has expired")
	}
	return nil
}
