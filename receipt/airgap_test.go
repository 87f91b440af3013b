package receipt_test

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"licet/receipt"
)

func TestRequestsAndFiles(t *testing.T) {
	r := receipt.Request{LicenseKey: "LIC-1", DeviceID: "d", Nonce: "n", Components: map[string]string{"disk": "1f"}}
	text := must(t)(r.Armor())
	got, err := receipt.ParseRequest("Dear shop,\r\n" + strings.ReplaceAll(text, "\n", "\r\n") + "\r\nBest wishes")
	if err != nil || got.LicenseKey != "LIC-1" || got.Components["disk"] != "1f" {
		t.Errorf("the request is %+v, %v", got, err)
	}
	f := receipt.File{Keys: "k", Receipt: "r"}
	file := must(t)(f.Armor())
	if back, err := receipt.ParseFile(file); err != nil || *back != f {
		t.Errorf("the file is %+v, %v", back, err)
	}
	for name, bad := range map[string]string{
		"no text": "", "another kind": file, "two texts": text + text, "cut": text[:len(text)/2],
		"headers": strings.Replace(text, "-----\n", "-----\nA: b\n\n", 1),
		"huge":    text + strings.Repeat(" ", 1<<20),
	} {
		var refused *receipt.Error
		if _, err := receipt.ParseRequest(bad); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRelease(t *testing.T) {
	signer, device, foreign := testKey("receipts"), testKey("device"), testKey("foreign")
	public := func(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }
	keys := &receipt.KeySet{Keys: []receipt.JSONWebKey{receipt.NewJSONWebKey(public(signer))}}
	signed := func(deviceKey string, by ed25519.PrivateKey) string {
		r := receipt.Receipt{LicenseID: "lic_1", ProductID: "editor", IssuedAt: now, NotBefore: now,
			ExpiresAt: now + day, AccountID: "acct_01", Mode: "live", DeviceID: "device-1", Status: "activated",
			Revision: 1, DeviceKey: deviceKey}
		return must(t)(r.Sign(receipt.NewSigner(by)))
	}
	id := receipt.KeyID(public(device))
	for name, c := range map[string]struct {
		receipt string
		by      ed25519.PrivateKey
		want    receipt.Reason
	}{
		"of the device":               {signed(id, signer), device, ""},
		"by another key":              {signed(id, signer), foreign, receipt.UnknownKey},
		"of a receipt without a key":  {signed("", signer), device, receipt.UnknownKey},
		"of a receipt that is forged": {signed(id, foreign), device, receipt.UnknownKey},
		"of a receipt that is none":   {"a.b.c", device, receipt.Malformed},
	} {
		named := c.want == "" || name == "of a receipt that is forged"
		if receipt.NamesKey(c.receipt, public(c.by)) != named {
			t.Errorf("a release %s: NamesKey returns %v", name, !named)
		}
		text := must(t)((&receipt.Release{Receipt: c.receipt, IssuedAt: now}).Sign(c.by))
		got, err := receipt.OpenRelease(text, keys)
		var refused *receipt.Error
		switch {
		case c.want == "" && (err != nil || got.DeviceID != "device-1"):
			t.Errorf("a release %s: %+v, %v", name, got, err)
		case c.want != "" && (!errors.As(err, &refused) || refused.Reason != c.want):
			t.Errorf("a release %s: %v, want %s", name, err, c.want)
		}
	}
}
