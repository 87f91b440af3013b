package handlers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/handlers/limits"
	"licet/receipt"
)

// batchResult is an answer to one request of a batch.
type batchResult struct {
	File *struct {
		DeviceID    string `json:"device_id"`
		ReceiptFile string `json:"receipt_file"`
	}
	Failure *struct {
		Code  int
		Error struct {
			Reason    string
			Retryable bool
			RequestID string `json:"request_id"`
			Fields    []struct{ Field string }
			Details   map[string]int
		}
	}
}

// makeFiles sends requests of devices in one call.
func (s *fixture) makeFiles(apiKey string, requests ...string) (answer, []batchResult) {
	s.t.Helper()
	texts := make([]string, len(requests))
	for i, each := range requests {
		texts[i] = quoted(each)
	}
	got := s.send("POST", "/v1/receipts/batch", apiKey, `{"requests":[`+strings.Join(texts, ",")+`]}`)
	var answered struct {
		Data struct{ Results []batchResult }
	}
	if err := json.Unmarshal([]byte(got.body), &answered); err != nil {
		s.t.Fatal(err)
	}
	if n := len(answered.Data.Results); got.code == 0 && n != len(requests) {
		s.t.Fatalf("%d results for %d requests", n, len(requests))
	}
	return got, answered.Data.Results
}

// code returns the code of a result; 0: there is a file.
func (r *batchResult) code() int {
	if r.Failure == nil {
		return 0
	}
	return r.Failure.Code
}

// TestReceiptBatch: each request of a batch gets its receipt file or its own error, as the request would alone.
func TestReceiptBatch(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"max_devices":2`).must(t, 0)
	key, other := s.license(), s.license()
	revoked := s.license()
	s.change(revoked, "revoke", `{}`).must(t, 0)

	requests := []string{
		request(t, key, "lab-1"), "no request", request(t, key, "lab-2"), request(t, key, "lab-3"),
		request(t, other, "lab-3"), request(t, key, "lab-1"), request(t, revoked, "lab-1"),
		request(t, absentKey(), "lab-1"), request(t, "LIC-1", "lab-1"), request(t, key, ""),
	}
	for range 2 { // the second time takes no further slot
		got, results := s.makeFiles("", requests...)
		got.must(t, 0)
		var codes []int
		for i, each := range results {
			codes = append(codes, each.code())
			if alone := s.makeFile("", requests[i], "").code; alone != each.code() {
				t.Errorf("request %d: %d, and %d alone", i, each.code(), alone)
			}
			if (each.File == nil) == (each.Failure == nil) {
				t.Errorf("request %d has both a file and an error, or none: %+v", i, each)
			}
		}
		if want := "[0 42200 0 40901 0 0 40301 40401 40001 42200]"; fmt.Sprint(codes) != want {
			t.Fatalf("the codes are %v, want %s", codes, want)
		}
		full := results[3].Failure.Error
		if full.Reason != "device_limit_reached" || full.Retryable || full.Details["max_devices"] != 2 ||
			full.RequestID != got.header.Get("X-Request-Id") {
			t.Errorf("the error of a full license is %+v", full)
		}
		if fields := results[1].Failure.Error.Fields; len(fields) != 1 || fields[0].Field != "request" {
			t.Errorf("the error of a bad request has the fields %v", fields)
		}
		for at, device := range map[int]string{0: "lab-1", 2: "lab-2", 4: "lab-3", 5: "lab-1"} {
			file, err := receipt.ParseFile(results[at].File.ReceiptFile)
			if err != nil {
				t.Fatal(err)
			}
			root, err := receipt.ParseRoot(s.receiptKeys().text("root"))
			if err != nil {
				t.Fatal(err)
			}
			v := receipt.Verifier{Root: root, DeviceID: device, Nonce: "n1"}
			if _, err := v.VerifyFile(file, s.clock.Now()); err != nil || results[at].File.DeviceID != device {
				t.Errorf("the file of request %d: %v", at, err)
			}
		}
	}
	for licenseKey, want := range map[string]float64{key: 2, other: 1} {
		if n := s.get(licenseKey).data["current_devices"]; n != want {
			t.Errorf("%v devices are bound, want %v", n, want)
		}
	}
	if _, results := s.makeFiles(keyOther, request(t, key, "lab-1")); results[0].code() != 40401 {
		t.Errorf("with the API key of another account: %+v", results[0])
	}
}

// TestReceiptBatchIsBounded: a batch that is no batch is refused as a whole, and changes nothing.
func TestReceiptBatchIsBounded(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", "").must(t, 0)
	key := s.license()
	s.send("POST", "/v1/receipts/batch", "", `{}`).must(t, 42200)
	s.send("POST", "/v1/receipts/batch", "", `{"requests":[]}`).must(t, 42200)
	s.send("POST", "/v1/receipts/batch", "", `{"requests":[null]}`).must(t, 40000)
	good := request(t, key, "lab-7")
	s.send("POST", "/v1/receipts/batch", "", `{"requests":[`+quoted(good)+`],"receipt_seconds":1}`).must(t, 42200)
	many := make([]string, 51)
	many[0] = good
	if got, _ := s.makeFiles("", many...); got.code != 42200 || !strings.Contains(got.body, "1 to 50") {
		t.Errorf("51 requests: %s", got.body)
	}
	if got, _ := s.makeFiles("", good, strings.Repeat("x", 16<<10)); got.code != 41300 {
		t.Errorf("a long batch: %s", got.body)
	}
	if n := s.get(key).data["current_devices"]; n != float64(0) {
		t.Errorf("%v devices after batches that were refused", n)
	}
}

// TestReceiptBatchCountsEach: each request of a batch counts against the limits of the account, of its license and of
// the address that guesses keys. The requests beyond a limit may be sent again.
func TestReceiptBatchCountsEach(t *testing.T) {
	t.Parallel()
	refused := func(results []batchResult) (n int) {
		for _, each := range results {
			if each.code() == 42900 {
				n++
				if !each.Failure.Error.Retryable {
					t.Errorf("the refusal is %+v", each.Failure)
				}
			}
		}
		return n
	}
	guesses := make([]string, 15)
	for i := range guesses {
		guesses[i] = request(t, fmt.Sprintf("LIC-%d", i), "lab-7")
	}
	rate := limits.Rate{Count: 10, Per: time.Hour}
	s := newService(t, limited(limits.Config{Address: rate})...)
	got, results := s.makeFiles("", guesses...)
	if got.must(t, 0); refused(results) != 5 {
		t.Errorf("%d of 15 guesses were refused", refused(results))
	}

	s = newService(t, limited(limits.Config{License: rate})...)
	same := make([]string, 15)
	for i := range same {
		same[i] = request(t, s.license(), "lab-7")
	}
	if _, results := s.makeFiles("", same...); refused(results) != 0 {
		t.Errorf("%d of 15 licenses were refused", refused(results))
	}
	key := s.license()
	for i := range same {
		same[i] = request(t, key, "lab-7")
	}
	if _, results := s.makeFiles("", same...); refused(results) != 5 {
		t.Errorf("%d of 15 requests for a license were refused", refused(results))
	}

	s = newService(t, limited(limits.Config{Account: rate})...)
	if got, results = s.makeFiles(keyAll, guesses...); refused(results) != 5 {
		t.Errorf("%d of 15 requests of an account were refused", refused(results))
	}
	if got.header.Get("RateLimit") == "" {
		t.Errorf("the batch has the headers %v", got.header)
	}
	if next, _ := s.makeFiles(keyAll, guesses[0]); next.code != 42900 {
		t.Errorf("the next batch of the account: %s", next.body)
	}
}

// TestReceiptBatchBoundsItsAnswer: receipts with many entitlements don't make an answer that exceeds the memory for it.
func TestReceiptBatchBoundsItsAnswer(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var entitlements []string
	for i := range 64 {
		entitlements = append(entitlements, fmt.Sprintf(`"feature-%d":%q`, i, strings.Repeat("x", 255)))
	}
	s.product("editor", `"entitlements":{`+strings.Join(entitlements, ",")+`}`).must(t, 0)
	key := s.license()
	same := make([]string, 40)
	for i := range same {
		same[i] = request(t, key, "lab-7", func(r *receipt.Request) { r.DeviceKey = "" })
	}
	got, results := s.makeFiles("", same...)
	got.must(t, 0)
	files := 0
	for i, each := range results {
		switch {
		case each.code() == 0 && files == i:
			files++
		case each.code() != 50301 || !each.Failure.Error.Retryable:
			t.Errorf("request %d: %+v", i, each.Failure)
		}
	}
	if files == 0 || files == len(same) || len(got.body) > 1<<20 {
		t.Errorf("%d files in %d bytes", files, len(got.body))
	}
}
