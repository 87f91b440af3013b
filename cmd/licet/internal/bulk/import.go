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

const (
	resultsSuffix = ".results.csv"
	journalSuffix = ".journal"
)

// Import grants and changes licenses as a CSV file says.
type Import struct {
	Service       *client.Client
	Input         string
	Results       string // empty: Input with .results.csv behind
	Separator     rune
	IgnoreUnknown bool // read over columns that are not known
	Parallel      int  // how many rows may be on their way at once

	// Skip and Resend are lines of rows of which nobody but their owner can find out
	// what became of them, and who says that they were granted, or were not.
	Skip, Resend []int

	Now      func() time.Time
	NewID    func() string           // makes what no other import is called
	Progress func(done, total int64) // rows; called by one goroutine at a time
	Problem  func(Problem)           // told of each problem of the input
	Failure  func(Failure)           // told at the end of each row that failed
}

// Failure is a row that is not done.
type Failure struct {
	Line int
	Text string
}

// ImportSummary tells what has become of all rows, over all runs of an import.
type ImportSummary struct {
	Rows     int
	Before   int // done before this run
	Licenses int // granted

	Granted, Changed, Unchanged, Skipped int // done
	Refused, Unanswered                  int // sent, and not done
	Open                                 int // not sent yet

	Results string // where each row is with what became of it
}

// Done is how many rows are done.
func (s ImportSummary) Done() int { return s.Granted + s.Changed + s.Unchanged + s.Skipped }

// Run checks all rows, and sends those that are not done. Rows that fail don't
// keep others from being sent. An error means that it broke off: the same call
// goes on where it was.
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
	book, err := lockFile(real + journalSuffix)
	if err != nil {
		return sum, fmt.Errorf("keep a journal beside the input: %w", err)
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

// begin starts an import. Until its first line is in the journal, nothing is
// left of it if anything is wrong.
func (r *run) begin(ctx context.Context, book *os.File, hash string) (err error) {
	begun := false
	defer func() {
		if !begun {
			err = errors.Join(err, removeAny(book.Name()))
		}
	}()
	found, err := r.check(r.input, r.Now())
	if err != nil {
		return err
	}
	if len(r.Skip)+len(r.Resend) > 0 {
		return errors.New("--skip and --resend are for an import that broke off, and this one has not begun")
	}
	switch _, err := os.Lstat(r.Results); {
	case err == nil:
		return fmt.Errorf("%s is there already, and is not of an import that could go on: move it away if this file was not imported yet, or name another one with --results", r.Results)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := r.reach(ctx); err != nil {
		return err
	}
	r.states, r.id = found.states, r.NewID()
	results, err := filepath.Abs(r.Results)
	if err != nil {
		return err
	}
	r.journal = &journal{file: book}
	if _, _, err = r.journal.add(beginning{journalVersion, r.id, r.Now().UTC(), hash, found.Rows, results}); err != nil {
		return err
	}
	begun = true
	return errors.Join(r.journal.syncAll(), syncFolder(book.Name()))
}

// reach finds out a service that can't be reached, or does not take the API key,
// before anything is in doubt.
func (r *run) reach(ctx context.Context) error {
	_, err := r.Service.ListLicenses(ctx, client.LicenseFilter{}, client.Page{Limit: 1})
	return err
}

// resume goes on with an import.
func (r *run) resume(ctx context.Context, book *os.File, hash string) error {
	var began beginning
	made := "" // a license that the import has made or changed
	var err error
	r.journal, err = readJournal(book, func(b beginning) error {
		began = b
		return r.sameInput(b, hash)
	}, func(e entry, at int64) error {
		if e.Row < 1 || e.Row > len(r.states) {
			return fmt.Errorf("the input has no row %d", e.Row)
		}
		if len(e.Licenses) > 0 {
			made = e.Licenses[0]
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
		return fmt.Errorf("%s has nothing in it that could be read: remove it if this file was not imported yet", book.Name())
	}
	r.id = began.Import
	if err := r.settle(); err != nil {
		return err
	}
	r.before = r.summary().Done()
	if r.before == len(r.states) {
		return nil
	}
	if made == "" {
		return r.reach(ctx)
	}
	_, err = r.Service.License(ctx, made)
	if client.HasReason(err, client.ReasonLicenseNotFound, client.ReasonInvalidLicenseKey) {
		return errors.New("this API key does not see the licenses that this import has made: it is of another account or mode, or of another service. Go on with the one that it began with")
	}
	return err
}

// sameInput checks that an import is the one of the input, and reads the input.
func (r *run) sameInput(b beginning, hash string) error {
	if b.Version != journalVersion {
		return fmt.Errorf("it is of another version of licet (%d): finish it with that", b.Version)
	}
	if b.SHA256 != hash {
		return fmt.Errorf("%s has changed since its import began at %s. Put it back as it was, and the same command finishes it. "+
			"To import other rows, save them in a file of another name, without those that %s has",
			r.Input, b.Started.Format(time.RFC3339), b.Results)
	}
	results, err := filepath.Abs(r.Results)
	if err != nil {
		return err
	}
	if results != b.Results {
		return fmt.Errorf("the results of this import are in %s: go on with --results %s", b.Results, b.Results)
	}
	// An end that was to come when the import began may be past.
	found, err := r.check(r.input, time.Time{})
	if err != nil {
		return err
	}
	if found.Rows != b.Rows {
		return fmt.Errorf("it is of %d rows, and now %d are read: give the same flags", b.Rows, found.Rows)
	}
	r.states = found.states
	return nil
}

// settle notes what the caller has found out of rows of which nobody else can.
func (r *run) settle() error {
	now := r.Now()
	for _, said := range []struct {
		flag   string
		lines  []int
		result result
	}{{"--skip", r.Skip, skipped}, {"--resend", r.Resend, denied}} {
		for _, line := range said.lines {
			i := slices.IndexFunc(r.states, func(s state) bool { return int(s.line) == line })
			if i < 0 || !r.states[i].lost(now) {
				return fmt.Errorf("%s %d: the row of that line is not one of which it is unknown whether it was granted%s", said.flag, line, r.unknown(now))
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

// unknown names the lines of rows that are in doubt for good.
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
