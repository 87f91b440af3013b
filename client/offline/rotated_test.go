package offline

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"licet/client"
	"licet/receipt"
)

// TestFilesAfterRotation: a device that has lists of revocations takes receipt files after a rotation has dropped the
// key that had signed the lists. A file whose receipt is older than the lists is refused, and changes nothing.
func TestFilesAfterRotation(t *testing.T) {
	const day = 24 * time.Hour
	clock := &laterClock{}
	service, api, keys := offer(t, clock, client.ProductTerms{Name: "Editor", MaxDevices: new(1),
		ReceiptValidity: "P90D", RevocationMaxAge: "P90D"})
	l := laptop(t, service, keys, clock.now, client.RetryFor(0))
	key := granted(t, api)
	file := func() string {
		asked := must[string](t)(l.Request(key, "", nil))
		return must[*client.ReceiptFile](t)(api.Receipts.MakeFile(t.Context(),
			client.DeviceRequest{Request: asked})).Text
	}
	listed := func() (lists int) {
		if err := l.locked(func(s *state) error {
			lists = len(s.Documents.Revocations)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return lists
	}
	must[*receipt.Receipt](t)(l.Import(file()))
	clock.ahead.Add(int64(46 * day))
	if want(t, "with a list", check(t, l), true, ""); listed() != 1 {
		t.Fatalf("the device has %d lists", listed())
	}
	must[*client.ReceiptKeys](t)(api.Receipts.RotateKeys(t.Context()))
	clock.ahead.Add(int64(91 * day))

	early := file()
	var refused *receipt.Error
	seen := func(ahead time.Duration) {
		if err := l.locked(func(s *state) error {
			s.Seen.AsOf += int64(ahead / time.Second)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	seen(100 * day)
	if _, err := l.Import(early); !errors.As(err, &refused) || refused.Reason != receipt.UnknownKey || listed() != 1 {
		t.Errorf("a receipt from before the lists: %v, and %d lists", err, listed())
	}
	seen(-100 * day)
	must[*receipt.Receipt](t)(l.Import(early))
	if want(t, "after the rotation", check(t, l), true, ""); listed() != 0 {
		t.Errorf("the device has %d lists", listed())
	}
}

// TestFileWithOlderKeys: a file counts although the device has got a newer set of receipt keys meanwhile.
func TestFileWithOlderKeys(t *testing.T) {
	clock := &laterClock{}
	service, api, keys := offer(t, clock, client.ProductTerms{Name: "Editor", MaxDevices: new(1)})
	l := laptop(t, service, keys, clock.now, client.WithHTTPClient(http.DefaultClient))
	key := granted(t, api)
	asked := must[string](t)(l.Request(key, "", nil))
	file := must[*client.ReceiptFile](t)(api.Receipts.MakeFile(t.Context(), client.DeviceRequest{Request: asked}))
	clock.ahead.Add(int64(3 * time.Hour))
	must[*receipt.Receipt](t)(l.Activate(t.Context(), key, ""))
	must[*receipt.Receipt](t)(l.Import(file.Text))
	want(t, "with the file", check(t, l), true, "")
}
