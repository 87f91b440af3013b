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
	// Algorithm is the only supported value of the parameter alg.
	Algorithm = "hmac-sha256"
	// MaxAge bounds the difference between a signature's time and now, in either direction, because
	// clocks differ.
	MaxAge = 300 * time.Second
	// maxSignatures bounds the work on a request. A client sends one signature, or two while it
	// replaces its secret. Proxies may add their own.
	maxSignatures = 8
)

// Key identifies and verifies the signatures of a client.
type Key struct {
	ID      string   // the parameter keyid of the client's signatures
	Secrets []string // any of them is valid; the text itself is the key of the HMAC, not what it encodes
}

// Verify returns an error if the signature of a request is invalid. The client may see the error.
//
// Verify ignores signatures with another keyid than key.ID, such as those of proxies. There must be at
// least one signature with key.ID. Each of these must
//
//   - be made with hmac-sha256 and one of the secrets,
//   - be created at most [MaxAge] before or after now, and not be expired,
//   - cover @method, @target-uri and authorization,
//   - cover content-digest if the request has a body, which must match the digest,
//   - cover idempotency-key if the request is a POST.
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
	found, digested := false, false
	for _, label := range labels {
		member, _ := inputs.Get(label)
		covered, isList := member.(httpsfv.InnerList)
		if !isList {
			return fmt.Errorf("%s in header Signature-Input is not a list of components in parentheses", label)
		}
		if id, _ := covered.Params.Get("keyid"); id != key.ID {
			continue
		}
		found = true
		if err := m.verify(label, covered, signatures, key, now); err != nil {
			return fmt.Errorf("signature %s: %w", label, err)
		}
		digested = digested || covers(covered, fieldContentDigest)
	}
	if !found {
		return fmt.Errorf("header Signature-Input has no signature with the keyid of the API key, %s", key.ID)
	}
	if digested {
		return m.checkDigest()
	}
	return nil
}

// verify verifies one signature.
func (m *Message) verify(
	label string, covered httpsfv.InnerList, signatures *httpsfv.Dictionary, key Key, now time.Time,
) error {
	signature, ok := byteSequence(signatures, label)
	if !ok {
		return errors.New("header Signature has no byte sequence under its label")
	}
	if algorithm, given := covered.Params.Get("alg"); given && algorithm != Algorithm {
		return errors.New("parameter alg must be " + Algorithm)
	}
	if err := checkTime(covered.Params, now); err != nil {
		return err
	}
	for _, component := range m.requiredComponents() {
		if !covers(covered, component) {
			return fmt.Errorf("it must cover %q", component)
		}
	}
	base, err := m.base(covered)
	if err != nil {
		return err
	}
	valid := false
	for _, secret := range key.Secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(base)
		// In constant time, whichever secret matches.
		valid = hmac.Equal(mac.Sum(nil), signature) || valid
	}
	if !valid {
		// The message names the address: most often the client knows the service by another one.
		scheme, authority, _ := m.splitTarget()
		return fmt.Errorf("it does not match this request to %s://%s and the API secret", scheme, authority)
	}
	return nil
}

// requiredComponents returns the components that a signature of the request must cover.
func (m *Message) requiredComponents() []string {
	names := make([]string, 0, 5)
	// Without authorization, the signature would also be valid with another API key.
	names = append(names, "@method", "@target-uri", "authorization")
	if len(m.Body) > 0 {
		names = append(names, fieldContentDigest)
	}
	if m.Method == "POST" {
		// The Idempotency-Key makes a replay within MaxAge harmless.
		names = append(names, "idempotency-key")
	}
	return names
}

// covers reports whether a signature covers a component, without parameters.
func covers(covered httpsfv.InnerList, name string) bool {
	return slices.ContainsFunc(covered.Items, func(i httpsfv.Item) bool {
		return i.Value == name && len(i.Params.Names()) == 0
	})
}

// checkTime checks the parameters created, which is required, and expires.
func checkTime(params *httpsfv.Params, now time.Time) error {
	created, given := params.Get("created")
	at, isNumber := created.(int64)
	switch {
	case !given || !isNumber:
		return errors.New("parameter created must be the time of the signature, in whole seconds since 1970")
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
		return errors.New("parameter expires must be in whole seconds since 1970")
	case now.After(time.Unix(until, 0)):
		return errors.New("it has expired")
	}
	return nil
}
