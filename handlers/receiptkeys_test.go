package handlers_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"licet/handlers/limits"
	"licet/licensing"
	"licet/node/service"
)

const keySetPath = "/v1/accounts/acct_acme/test/jwks.json"

// receiptKeys makes the receipt keys of the shop.
func (s *fixture) receiptKeys() answer {
	s.t.Helper()
	return s.send("PUT", "/v1/receipt_keys", keyAll, "").must(s.t, 0)
}

// keySet fetches the set of receipt keys, and returns the ids of its keys, the content of the signed set and the
// response.
func (s *fixture) keySet(headers ...string) (ids []string, signed map[string]any, response *http.Response) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), "GET", "http://"+s.addr+keySetPath, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if response, err = s.client.Do(request); err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var set struct {
		Keys   []map[string]string
		Signed string
	}
	if response.StatusCode != http.StatusOK {
		return nil, nil, response
	}
	if err := json.NewDecoder(response.Body).Decode(&set); err != nil {
		s.t.Fatal(err)
	}
	for _, key := range set.Keys {
		ids = append(ids, key["kid"])
	}
	content, err := base64.RawURLEncoding.DecodeString(strings.Split(set.Signed, ".")[1])
	if err == nil {
		err = json.Unmarshal(content, &signed)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return ids, signed, response
}

// TestReceiptKeys: an account has no receipt keys until it asks for them; anybody may read the set of keys, which
// caches may keep; a rotation adds a key.
func TestReceiptKeys(t *testing.T) {
	t.Parallel()
	s := newService(t)
	if got := s.send("GET", keySetPath, "", "").must(t, 40400); got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", got.header)
	}
	s.send("PUT", "/v1/receipt_keys", keyReadOnly, "").must(t, 40300)
	made := s.receiptKeys()
	again := s.receiptKeys()
	if root := made.text("root"); !strings.HasPrefix(root, "licet_root_") || len(root) != 54 ||
		made.text("jwks_url") != publicURL+keySetPath || again.body != made.body {
		t.Errorf("made %s, then %s", made.body, again.body)
	}
	ids, signed, first := s.keySet()
	if len(ids) != 1 || signed["account_id"] != "acct_acme" || signed["mode"] != "test" || signed["iss"] != publicURL ||
		signed["iat"].(float64) > float64(s.clock.Now().Unix()) ||
		signed["exp"].(float64) < float64(s.clock.Now().Add(91*24*time.Hour).Unix()) ||
		len(signed["keys"].([]any)) != 1 {
		t.Errorf("the set %v is %v", ids, signed)
	}
	for name, want := range map[string]string{"Cache-Control": "public, max-age=300",
		"Access-Control-Allow-Origin": "*", "Content-Type": "application/json; charset=utf-8"} {
		if got := first.Header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, _, same := s.keySet("If-None-Match", `"x", W/`+first.Header.Get("ETag")); same.StatusCode != 304 ||
		same.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("%d %v", same.StatusCode, same.Header)
	}
	signer, _ := s.node.RecallSigner(licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test})
	if _, err := signer.Sets.Of(int64(signed["iat"].(float64)), func() (none service.SignedDocument, err error) {
		return none, errors.New("signed again")
	}); err != nil {
		t.Error(err)
	}
	s.clock.advance(time.Minute)
	if _, _, same := s.keySet("If-None-Match", first.Header.Get("ETag")); same.StatusCode != 304 {
		t.Errorf("a minute later: %d", same.StatusCode)
	}

	s.clock.advance(time.Hour)
	rotated := s.send("PUT", "/v1/receipt_keys/next", keyAll, "").must(t, 0)
	if twice := s.send("PUT", "/v1/receipt_keys/next", keyAll, "").must(t, 0); twice.body != rotated.body ||
		rotated.text("root") != made.text("root") {
		t.Errorf("rotated to %s, then to %s", rotated.body, twice.body)
	}
	later, signed, _ := s.keySet()
	if len(later) != 2 || later[0] != ids[0] || len(signed["keys"].([]any)) != 2 {
		t.Errorf("the set is %v", later)
	}
	for _, path := range []string{"/v1/accounts/acct_acme/live/jwks.json", "/v1/accounts/acct_other/test/jwks.json",
		"/v1/accounts/acct_acme/Test/jwks.json", "/v1/accounts/x/test/jwks.json"} {
		s.send("GET", path, "", "").must(t, 40400)
	}
}

// TestStrangersAndReceiptKeys: strangers who guess accounts are limited by address, and those who name accounts with
// receipt keys are not.
func TestStrangersAndReceiptKeys(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{Address: limits.Rate{Count: 100, Per: time.Hour}})...)
	s.receiptKeys()
	refused := 0
	for i := range 120 {
		name := []string{"jwks.json", "revocations"}[i%2]
		if s.send("GET", fmt.Sprintf("/v1/accounts/acct_%d/test/%s", i, name), "", "").code == 42900 {
			refused++
		}
	}
	if refused != 20 {
		t.Errorf("%d of 120 guesses were refused", refused)
	}
	for range 2 {
		if ids, _, response := s.keySet(); len(ids) != 1 {
			t.Errorf("the set of the shop: %d", response.StatusCode)
		}
		s.clock.advance(2 * time.Minute)
	}
}
