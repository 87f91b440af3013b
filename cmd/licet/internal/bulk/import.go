package bulk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"licet/client"
)

// These are appended to the name of an input. The journal exists once the import has begun.
const (
	resultsSuffix = ".results.csv"
	journalSuffix = ".journal"
)

// Import grants and changes licenses from a CSV file.
type Import struct {
	Service       *client.Client
	Input         string
	Results       string // file for the results; empty: Input with the suffix .results.csv
	Separator     rune
	IgnoreUnknown bool // ignore unknown columns
	Parallel      int  // how many rows to send at once

	// ExternalKeys is how the account matches external keys, as client.Account has it; empty: unknown, so that only
	// the service finds keys that the account takes for the same.
	ExternalKeys string

	// Skip and Resend are the lines of rows whose outcome only a person can find out: Skip has the granted rows, and
	// Resend has the rows that were not granted.
	Skip, Resend []int

	Now      func() time.Time
	NewID    func() string           // returns a unique id for a new import
	Progress func(done, total int64) // rows; called by one goroutine at a time
	Problem  func(Problem)           // called with each problem of the input
	Failure  func(Failure)           // called at the end with each failed row
}

// Failure is a failed row.
type Failure struct {
	Line int
	Text string
}

// ImportSummary counts the results of all rows, over all runs of an import.
type ImportSummary struct {
	Rows     int
	Before   int // done before this run
	Licenses int // granted

	Granted, Changed, Unchanged, Existing, Skipped int // done
	Refused, Unanswered                            int // sent, but not done
	Open                                           int // not sent yet

	Results string // the file with the result of each row
}

// Done returns the number of rows that are done.
func (s ImportSummary) Done() int {
	return s.Granted + s.Changed + s.Unchanged + s.Existing + s.Skipped
}

// Run checks all rows and sends the rows that are not done. After a failed row it continues with the next row. An error
// means that the import was interrupted: repeating the call continues it.
func (im *Import) Run(ctx context.Context) (sum ImportSummary, err error) {
	file, hash, err := openInput(im.Input)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if im.Results == "" {
		im.Results = im.Input + resultsSuffix
	}
	real, err := filepath.EvalSymlinks(im.Input)
	if err != nil {
		return sum, err
	}
	book, err := LockFile(real + journalSuffix)
	if err != nil {
		return sum, fmt.Errorf("create the journal next to the input: %w", err)
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	r := &run{Import: im, input: file}
	info, err := book.Stat()
	if err != nil {
		return sum, err
	}
	if info.Size() == 0 {
		if err := r.begin(ctx, book, hash); err != nil {
			return sum, err
		}
	} else if err := r.resume(ctx, book, hash); err != nil {
		return sum, err
	}
	return r.finish(ctx)
}

// begin starts an import. If it fails before the first line of the journal is written, it leaves no files.
func (r *run) begin(ctx context.Context, book *os.File, hash string) (err error) {
	begun := false
	defer func() {
		if !begun {
			err = errors.Join(err, removeAny(book.Name()))
		}
	}()
	found, err := r.check(r.input, r.Now(), r.ExternalKeys)
	if err != nil {
		return err
	}
	if len(r.Skip)+len(r.Resend) > 0 {
		return errors.New("--skip and --resend need an interrupted import, and this import has not started")
	}
	switch _, err := os.Lstat(r.Results); {
	case err == nil:
		return fmt.Errorf("%s exists, but has no journal of an import to continue: move it away if this file was not "+
			"imported yet, or name another file with --results", r.Results)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := r.probe(ctx); err != nil {
		return err
	}
	if err := r.refuseRepeated(ctx, found); err != nil {
		return err
	}
	r.states, r.id = found.states, r.NewID()
	results, err := filepath.Abs(r.Results)
	if err != nil {
		return err
	}
	r.journal = &journal{file: book}
	if _, _, err = r.journal.add(beginning{journalVersion, r.id, r.Now().UTC(), hash, found.Rows,
		results}); err != nil {
		return err
	}
	begun = true
	return errors.Join(r.journal.syncAll(), syncFolder(book.Name()))
}

// probe calls the service once, so that an unreachable service or a refused API key shows before any row is sent.
func (r *run) probe(ctx context.Context) error {
	_, err := r.Service.Licenses.List(ctx, client.LicenseFilter{}, client.Page{Limit: 1})
	return err
}

// resume continues an import.
func (r *run) resume(ctx context.Context, book *os.File, hash string) error {
	var began beginning
	made := "" // the id of a license that the import granted or changed
	var err error
	r.journal, err = readJournal(book, func(b beginning) error {
		began = b
		return r.sameInput(b, hash)
	}, func(e entry, at int64) error {
		if e.Row < 1 || e.Row > len(r.states) {
			return fmt.Errorf("the input has no row %d", e.Row)
		}
		if len(e.Licenses) > 0 {
			made = e.Licenses[0].ID
		}
		if e.Result == granted {
			r.licenses += len(e.Licenses)
		}
		return r.states[e.Row-1].apply(e, at)
	})
	if err != nil {
		return err
	}
	if began.Version == 0 {
		return fmt.Errorf("%s is empty or unreadable: remove it if this file was not imported yet", book.Name())
	}
	r.id = began.Import
	if err := r.decide(); err != nil {
		return err
	}
	r.before = r.summary().Done()
	if r.before == len(r.states) {
		return nil
	}
	if made == "" {
		return r.probe(ctx)
	}
	_, err = r.Service.Licenses.Get(ctx, made)
	if client.HasReason(err, client.ReasonLicenseNotFound, client.ReasonInvalidLicenseKey) {
		return errors.New("this API key does not see the licenses of this import: it belongs to another account, " +
			"mode or service; continue with the API key of the first run")
	}
	return err
}

// sameInput checks that the journal belongs to the input, and reads the input.
func (r *run) sameInput(b beginning, hash string) error {
	if err := b.readable(); err != nil {
		return err
	}
	if b.SHA256 != hash {
		return fmt.Errorf("%s has changed since its import began at %s. Put it back as it was, and the same command "+
			"finishes it. "+
			"To import other rows, save them in a file of another name, without the rows of %s",
			r.Input, b.Started.Format(time.RFC3339), b.Results)
	}
	results, err := filepath.Abs(r.Results)
	if err != nil {
		return err
	}
	if results != b.Results {
		return fmt.Errorf("the results of this import are in %s: continue with --results %s", b.Results, b.Results)
	}
	// An expiry that was in the future when the import started may be past now, and the account may match external keys
	// in another way.
	found, err := r.check(r.input, time.Time{}, "")
	if err != nil {
		return err
	}
	if found.Rows != b.Rows {
		return fmt.Errorf("it has %d rows, but the input now has %d: use the same flags", b.Rows, found.Rows)
	}
	r.states = found.states
	return nil
}

// decide records what the caller says about rows with an unknown outcome.
func (r *run) decide() error {
	now := r.Now()
	for _, said := range []struct {
		flag   string
		lines  []int
		result result
	}{{"--skip", r.Skip, skipped}, {"--resend", r.Resend, denied}} {
		for _, line := range said.lines {
			i := slices.IndexFunc(r.states, func(s state) bool { return int(s.line) == line })
			if i < 0 || !r.states[i].lost(now) {
				return fmt.Errorf("%s %d: the outcome of the row in that line is not unknown%s", said.flag, line,
					r.unknown(now))
			}
			e := entry{Row: i + 1, Result: said.result}
			at, _, err := r.journal.add(e)
			if err != nil {
				return err
			}
			if err := r.states[i].apply(e, at); err != nil {
				return err
			}
		}
	}
	return r.journal.syncAll()
}

// unknown returns the lines of rows whose outcome stays unknown.
func (r *run) unknown(now time.Time) string {
	var lines []string
	for i := range r.states {
		if r.states[i].lost(now) {
			lines = append(lines, fmt.Sprint(r.states[i].line))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "; such are the lines " + strings.Join(lines, ", ")
}
