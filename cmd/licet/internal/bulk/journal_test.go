package bulk

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/client"
)

// reopen reads a journal with this text.
func reopen(t *testing.T, text string) (j *journal, began beginning, entries []entry, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	j, err = readJournal(file, func(b beginning) error { began = b; return nil }, func(e entry, at int64) error {
		if read := strings.SplitAfter(text[at:], "\n")[0]; !strings.Contains(read, fmt.Sprintf(`"row":%d`, e.Row)) {
			t.Errorf("row %d is said to be at %q", e.Row, read)
		}
		entries = append(entries, e)
		return nil
	})
	return j, began, entries, err
}

const firstLines = `{"version":2,"import":"x","started":"2030-01-01T00:00:00Z","sha256":"00","rows":3,"results":"r.csv"}
{"row":1,"try":1,"at":"2030-01-01T00:00:00Z"}
{"row":1,"result":"granted","licenses":[{"id":"a","key":"A"},{"id":"b","key":"B"}]}
`

// TestJournalAfterCrash reads journals as a crash of the process, or of the
// machine, leaves them: what was on disk counts, and the rest is cut off.
func TestJournalAfterCrash(t *testing.T) {
	last := `{"row":2,"try":1,"at":"2030-01-01T00:00:00Z"}` + "\n"
	for cut := range len(last) {
		j, began, entries, err := reopen(t, firstLines+last[:cut])
		if err != nil || began.Import != "x" || len(entries) != 2 || j.size != int64(len(firstLines)) {
			t.Fatalf("cut after %d bytes: %v, %+v, %d entries", cut, err, began, len(entries))
		}
		if _, _, err := j.add(entry{Row: 3, Result: refused, Error: "no"}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(j.file.Name())
		if want := firstLines + `{"row":3,"result":"refused","error":"no"}` + "\n"; err != nil || string(text) != want {
			t.Fatalf("cut after %d bytes, it goes on as %q, %v", cut, text, err)
		}
	}
	if _, _, entries, err := reopen(t, firstLines+"\x00\x00\x00\x00\x00\n"); err != nil || len(entries) != 2 {
		t.Errorf("zeros at the end: %v, %d entries", err, len(entries))
	}
}

func TestDamagedJournal(t *testing.T) {
	for name, text := range map[string]string{
		"a line that is none":        firstLines + "x\n",
		"zeros in the middle":        firstLines + "\x00\x00\n" + `{"row":2,"result":"refused"}` + "\n",
		"another member":             firstLines + `{"row":2,"outcome":"refused"}` + "\n",
		"no beginning":               `{"row":2,"result":"refused"}` + "\n",
		"beginning of another thing": "license_key,status\n",
	} {
		if _, _, _, err := reopen(t, text); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJournalOfManyAtOnce(t *testing.T) {
	j, _, _, err := reopen(t, firstLines)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			want := entry{Row: i + 1, Result: granted, Licenses: []license{{fmt.Sprint(i), "K"}}}
			at, end, err := j.add(want)
			if err == nil {
				err = j.sync(end)
			}
			if got, readErr := j.entry(at); err != nil || readErr != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, want %+v: %v %v", got, want, err, readErr)
			}
		})
	}
	group.Wait()
	if j.synced != j.size {
		t.Errorf("%d of %d bytes are on disk", j.synced, j.size)
	}
}

// Once the disk has failed nothing more is sent: what is written after that may
// be lost.
func TestJournalThatCannotBeWritten(t *testing.T) {
	j, _, _, err := reopen(t, firstLines)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := j.add(entry{Row: 1}); err == nil {
			t.Error("it took a line")
		}
	}
}

func TestWhichTryIsNext(t *testing.T) {
	start := time.UnixMilli(1_900_000_000_000)
	intent := entry{Row: 1, Try: 1, At: start}
	for _, c := range []struct {
		name    string
		entries []entry
		after   time.Duration
		try     int
		lost    bool
	}{
		{"never sent", nil, 0, 1, false},
		{"killed", []entry{intent}, time.Hour, 1, false},
		{"killed a day ago", []entry{intent}, 23 * time.Hour, 1, true},
		{"killed before the clock was set back", []entry{intent}, -time.Hour, 1, true},
		{"unanswered", []entry{intent, {Result: unanswered}}, time.Hour, 1, false},
		{"unanswered a day ago", []entry{intent, {Result: unanswered}}, 24 * time.Hour, 1, true},
		{"refused", []entry{intent, {Result: refused}}, time.Hour, 1, false},
		{"refused for good", []entry{intent, {Result: refused, Kept: true}}, time.Hour, 2, false},
		{"refused a day ago", []entry{intent, {Result: refused}}, 23 * time.Hour, 2, false},
		{"refused, and killed in the second try", []entry{intent, {Result: refused}, intent}, time.Hour, 1, false},
		{"refused, killed in the second try a day ago", []entry{intent, {Result: refused}, intent}, 23 * time.Hour, 1,
			true},
		{"found missing", []entry{intent, {Result: denied}}, 24 * time.Hour, 2, false},
	} {
		var s state
		for i, e := range c.entries {
			if err := s.apply(e, int64(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		if last := len(c.entries); last > 0 && (s.at > 0) != (c.entries[last-1].Result != "") {
			t.Errorf("%s: its last result is said to be at %d", c.name, s.at)
		}
		now := start.Add(c.after)
		if got := s.lost(now); got != c.lost {
			t.Errorf("%s: lost is %v", c.name, got)
		}
		try, first := s.next(now)
		if want := map[bool]time.Time{true: start, false: now}[try == 1 && len(c.entries) > 0]; try != c.try ||
			!first.Equal(want) {
			t.Errorf("%s: try %d, first sent %v, want %d, %v", c.name, try, first, c.try, want)
		}
	}
	var s state
	if err := s.apply(entry{Result: "sold"}, 1); err == nil {
		t.Error("an unknown result was taken")
	}
}

// TestJournalIsOnDiskBeforeARowIsSent looks at the journal whenever a grant comes
// in. A crash of the machine could not be made otherwise.
func TestJournalIsOnDiskBeforeARowIsSent(t *testing.T) {
	text := "product_id\n" + strings.Repeat("editor\n", 100)
	r := &run{Import: &Import{Separator: ',', Parallel: 8, Now: time.Now, Problem: func(p Problem) { t.Error(p) }},
		id: "x"}
	var err error
	if r.journal, _, _, err = reopen(t, firstLines); err != nil {
		t.Fatal(err)
	}
	r.Input = filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(r.Input, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r.input, _, err = openInput(r.Input); err != nil {
		t.Fatal(err)
	}
	defer r.input.Close()
	found, err := r.check(r.input, time.Time{}, "")
	if err != nil {
		t.Fatal(err)
	}
	r.states = found.states
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		var row int
		if _, err := fmt.Sscanf(request.Header.Get("Idempotency-Key"), "licet-import-x-%d-", &row); err != nil {
			t.Error(err)
		}
		r.journal.syncing.Lock()
		synced := r.journal.synced
		r.journal.syncing.Unlock()
		onDisk := make([]byte, synced)
		if _, err := r.journal.file.ReadAt(onDisk, 0); err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(onDisk), fmt.Sprintf(`{"row":%d,"try":1,`, row)) {
			t.Errorf("row %d was sent, and the journal on disk does not say so", row)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":40404,"message":"no","error":{"reason":"product_not_found"}}`)
	}))
	defer server.Close()
	if r.Service, err = client.New(server.URL, "lk_test_x"); err != nil {
		t.Fatal(err)
	}
	defer r.Service.CloseIdleConnections()
	path := filepath.Join(t.TempDir(), "results")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r.results, err = appendResults(path); err != nil {
		t.Fatal(err)
	}
	if err := r.sendAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 100 {
		t.Errorf("%d rows were sent", asked.Load())
	}
}

func TestOutcomesOfFailedGrants(t *testing.T) {
	answer := func(status, n int, reason string, retryable bool) error {
		return fmt.Errorf("POST /v1/licenses: %w",
			&client.Error{Status: status, Code: status*100 + n, Reason: reason, Retryable: retryable})
	}
	for _, c := range []struct {
		name   string
		err    error
		tries  int
		result result
		kept   bool
		stops  bool
	}{
		{"no answer", io.ErrUnexpectedEOF, 1, "", false, true},
		{"the answer of a proxy", &client.Error{Status: 403}, 1, "", false, true},
		{"no such product", answer(404, 4, client.ReasonProductNotFound, false), 1, refused, false, false},
		{"no such product, at the second try", answer(404, 4, client.ReasonProductNotFound, false), 2, refused, false,
			false},
		{"bad member", answer(422, 0, client.ReasonInvalidField, false), 1, refused, false, false},
		{"the license's state", answer(409, 3, client.ReasonInvalidLicenseState, false), 1, refused, true, false},
		{"not allowed", answer(403, 5, client.ReasonSelfServiceNotAllowed, false), 1, refused, true, false},
		{"other request", answer(422, 1, client.ReasonIdempotencyKeyReused, false), 1, unanswered, false, false},
		{"a bug", answer(500, 0, client.ReasonInternal, false), 1, unanswered, false, false},
		{"unknown", answer(504, 0, client.ReasonOutcomeUnknown, true), 1, "", false, true},
		{"worked on", answer(409, 0, client.ReasonRequestInProgress, true), 1, "", false, true},
		{"not done", answer(503, 0, client.ReasonUnavailable, true), 1, refused, false, true},
		{"not done, but perhaps before", answer(503, 0, client.ReasonUnavailable, true), 2, "", false, true},
		{"too many", answer(429, 0, client.ReasonRateLimited, true), 1, refused, false, true},
		{"without the scope", answer(403, 0, client.ReasonForbidden, false), 1, refused, false, true},
		{"key revoked since", answer(401, 0, client.ReasonUnauthenticated, false), 2, "", false, true},
		{"key revoked", answer(401, 0, client.ReasonUnauthenticated, false), 1, refused, false, true},
	} {
		e, stop := resultOf(c.err, c.tries)
		if e.Result != c.result || e.Kept != c.kept || (stop != nil) != c.stops || (e.Error != "") != (e.Result != "") {
			t.Errorf("%s: %+v, stops with %v", c.name, e, stop)
		}
	}
}
