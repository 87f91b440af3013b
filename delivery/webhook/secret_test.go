package webhook_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"licet/delivery/webhook"
)

func secretOf(t *testing.T, fill byte) webhook.Secret {
	t.Helper()
	secret, err := webhook.NewSecret(bytes.NewReader(bytes.Repeat([]byte{fill}, 64)))
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestSecretsAreReadAsTheyAreWritten(t *testing.T) {
	made, err := webhook.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	read, err := webhook.ParseSecret(made.Text())
	if err != nil || read != made {
		t.Errorf("reading %s: %v", made.Text(), err)
	}
	if other, _ := webhook.NewSecret(rand.Reader); other == made {
		t.Error("two secrets are the same")
	}
	if got, want := secretOf(t, 0).Text(), "whsec_"+strings.Repeat("A", 43)+"="; got != want {
		t.Errorf("32 zeros are %s, want %s", got, want)
	}
}

func TestSecretsOfEachLength(t *testing.T) {
	for size := range 100 {
		text := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, size))
		if secret, err := webhook.ParseSecret(text); (err == nil) != (size >= 24 && size <= 64) || err == nil &&
			secret.Text() != text {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestParseSecretDoesNotQuote(t *testing.T) {
	good := secretOf(t, 9).Text()
	for _, text := range []string{"", "whsec_", good[6:], "whsec-" + good[6:], good + "A", " " + good, good + "\n",
		good[:20], "whsec_" + strings.Repeat("?", 44)} {
		if _, err := webhook.ParseSecret(text); err == nil || len(text) > 8 && strings.Contains(err.Error(), text[8:]) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	secrets := webhook.Secrets{Current: secretOf(t, 'x'), Previous: secretOf(t, 'y')}
	for _, text := range []string{
		fmt.Sprint(secrets.Current), fmt.Sprintf("%s %v %+v %#v %q", secrets.Current, secrets, secrets, secrets,
			secrets.Current),
	} {
		if strings.Contains(text, "xxx") || strings.Contains(text, "yyy") ||
			strings.Contains(text, secrets.Current.Text()[8:]) {
			t.Errorf("printed as %s", text)
		}
	}
}

func TestNewSecretNeedsEntropy(t *testing.T) {
	f := func(entropy io.Reader) {
		t.Helper()
		if secret, err := webhook.NewSecret(entropy); err == nil || secret != (webhook.Secret{}) {
			t.Errorf("made %s", secret.Text())
		}
	}
	f(strings.NewReader("too little"))
	f(iotest.ErrReader(errors.New("none")))
}

func TestTwoSecretsAreLiveWhileOneIsNew(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	a, b, c := secretOf(t, 1), secretOf(t, 2), secretOf(t, 3)
	f := func(what string, s webhook.Secrets, at time.Time, want ...webhook.Secret) {
		t.Helper()
		if got := s.Live(at); len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s: %d live, want %d", what, len(got), len(want))
		}
	}
	first := webhook.Secrets{Current: a}
	f("at first", first, now, a)
	second := first.Rotate(b, now, time.Hour)
	f("after a rotation", second, now, b, a)
	f("until its end", second, now.Add(time.Hour-1), b, a)
	f("at its end", second, now.Add(time.Hour), b)
	f("after a second one", second.Rotate(c, now.Add(time.Minute), time.Hour), now.Add(time.Minute), c, b)
	f("without an overlap", second.Rotate(c, now, 0), now, c)
	if first.Current != a {
		t.Error("the rotation has changed what was rotated")
	}
}
