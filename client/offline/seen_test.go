package offline

import (
	"encoding/json"
	"testing"

	"licet/client"
	"licet/receipt"
)

// TestOlderReceiptOfEarlierLicense: a program that has got another license refuses an older receipt of its first one.
// A state of a version that remembered one license still counts.
func TestOlderReceiptOfEarlierLicense(t *testing.T) {
	s := newShop(t)
	l, network := s.device(t, "laptop")
	kept := &memory{}
	l.cfg.Store = kept
	key := s.license(t)
	must[*receipt.Receipt](t)(l.Activate(t.Context(), key, ""))
	stored := func() (s state) {
		if err := json.Unmarshal(kept.text, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	put := func(s state) { kept.text = must[[]byte](t)(json.Marshal(s)) }
	old := stored().Documents.Receipt
	must[*client.License](t)(s.api.Licenses.Update(t.Context(), key, client.LicenseUpdate{MaxDevices: new(3)}))
	newest := must[*receipt.Receipt](t)(l.Validate(t.Context()))
	must[*receipt.Receipt](t)(l.Activate(t.Context(), s.license(t), ""))
	network.away.Store(true)

	now := stored()
	good := now.Documents.Receipt
	if e := now.Seen.Earlier; len(e) != 1 || e[0].LicenseID != newest.LicenseID || e[0].Revision != newest.Revision {
		t.Errorf("the device has seen %+v before, want revision %d of %s", e, newest.Revision, newest.LicenseID)
	}
	now.Documents.Receipt = old
	put(now)
	want(t, "with an older receipt of the first license", check(t, l), false, string(receipt.Older))
	now.Documents.Receipt, now.Seen.Earlier = good, nil
	put(now)
	want(t, "with a state of an earlier version", check(t, l), true, "")
}
