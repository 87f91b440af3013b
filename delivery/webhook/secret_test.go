package webhook_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"licet/delivery/webhook"
)

func secretOf(t *testing.T, fill byte) webhook.Secret {
	t.Helper()
	secret, err := webhook.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestSecretsAreReadAsTheyAreWritten(t *testing.T) {
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
	secrets := []webhook.Secret{secretOf(t, 'x'), secretOf(t, 'y')}
	for _, text := range []string{
		fmt.Sprint(secrets[0]), fmt.Sprintf("%s %v %+v %#v %q", secrets[0], secrets, secrets, secrets,
			secrets[0]),
	} {
		if strings.Contains(text, "xxx") || strings.Contains(text, "yyy") ||
			strings.Contains(text, secrets[0].Text()[8:]) {
			t.Errorf("printed as %s", text)
		}
	}
}
