package bulk

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"licet/client"
)

const (
	partialSuffix = ".partial"
	placeSuffix   = ".partial.json"
	placeVersion  = 1
	// placeEvery is how often the place is put down. That takes two waits for the
	// disk; what comes after the last one is read again after a crash.
	placeEvery = time.Second
)

// ExportSummary tells of an export that is done.
type ExportSummary struct {
	Rows   int64 // in the file
	Before int64 // of these, how many an earlier try had written
}

// place is how far an export has come: the file's first Bytes are the rows of
// all pages up to the one that Cursor leads to.
type place struct {
	Version int                  `json:"version"`
	Columns []string             `json:"columns"`
	Filter  client.LicenseFilter `json:"filter"`
	Cursor  string               `json:"cursor"`
	Bytes   int64                `json:"bytes"`
	Rows    int64                `json:"rows"`
}

// ToFile writes all rows to a file, which appears once it is whole; one that is
// there already is replaced then. If it fails, or is killed, the rows so far stay
// in path.partial, and the same call goes on behind them. restart begins anew.
//
// No row is lost or written twice by that: a place is put down only after the
// rows before it are on disk, and what is behind the last one is cut off. The
// service's cursors lead on from the same license however many were made since.
func (e *Export) ToFile(ctx context.Context, path string, restart bool) (sum ExportSummary, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return sum, fmt.Errorf("%s is no file that could be replaced; leave --file out to write to stdout", path)
	}
	file, err := lockFile(path + partialSuffix)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	at, err := e.resume(file, path, restart)
	if err != nil {
		return sum, err
	}
	sum.Before = at.Rows
	w := &partialFile{file: file, path: path, at: at, now: e.Now, placed: e.Now()}
	resumed := at.Cursor != ""
	err = e.pages(ctx, at.Cursor, func(page []client.License, next string) error {
		resumed = false
		if err := w.add(page, next); err != nil {
			return err
		}
		e.tell(w.at.Rows)
		return nil
	})
	if err == nil {
		err = w.finish()
	}
	sum.Rows = w.at.Rows
	if err == nil {
		return sum, nil
	}
	if w.at.Bytes == 0 {
		return sum, errors.Join(err, removeAny(path+partialSuffix)) // nothing to go on from
	}
	if resumed && client.HasReason(err, client.ReasonInvalidField) {
		return sum, fmt.Errorf("the service does not know the place where %s broke off: it may be of another account or mode. Use its API key, or begin anew with --restart: %w", path+partialSuffix, err)
	}
	err = errors.Join(err, w.put())
	return sum, &BrokenOffError{fmt.Sprintf("after %s, written to %s", counted(w.at.Rows, "row"), path+partialSuffix), err}
}

// resume finds out where to go on, and leaves the file with just the rows up to
// there.
func (e *Export) resume(file *os.File, path string, restart bool) (place, error) {
	at := place{Version: placeVersion, Columns: Columns(), Filter: e.Filter}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return at, err
	}
	text, err := os.ReadFile(path + placeSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (restart || size == 0):
		// Without rows the place is left over from an export that was put in place.
		return at, errors.Join(removeAny(path+placeSuffix), file.Truncate(0), rewind(file))
	case err != nil:
		return at, err
	}
	var old place
	if err := json.Unmarshal(text, &old); err != nil || old.Version != placeVersion || old.Bytes > size || !slices.Equal(old.Columns, at.Columns) {
		return at, fmt.Errorf("%s and %s don't fit together, or are of another version: begin anew with --restart", path+partialSuffix, path+placeSuffix)
	}
	if old.Filter != at.Filter {
		return at, fmt.Errorf("%s is an export with other filters that broke off: finish it with those, begin anew with --restart, or take another file", path+partialSuffix)
	}
	if err := file.Truncate(old.Bytes); err != nil {
		return at, err
	}
	_, err = file.Seek(old.Bytes, io.SeekStart)
	return old, err
}

func rewind(file io.Seeker) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// partialFile is an export that is not whole yet.
type partialFile struct {
	file   *os.File
	path   string
	at     place // of what is written
	now    func() time.Time
	placed time.Time // when a place was last put down
}

// add writes one page.
func (w *partialFile) add(page []client.License, next string) error {
	var rows bytes.Buffer
	out := csv.NewWriter(&rows)
	if w.at.Bytes == 0 {
		if err := out.Write(w.at.Columns); err != nil {
			return err
		}
	}
	if err := writePage(out, page); err != nil {
		return err
	}
	n, err := w.file.Write(rows.Bytes())
	if err != nil {
		return err
	}
	w.at.Bytes += int64(n)
	w.at.Rows += int64(len(page))
	w.at.Cursor = next
	if now := w.now(); next != "" && now.Sub(w.placed) >= placeEvery {
		w.placed = now
		return w.put()
	}
	return nil
}

// put makes sure of the rows, and then of the place behind them.
func (w *partialFile) put() error {
	if w.at.Cursor == "" {
		return nil // nothing is there yet, or all is
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	return replaceFile(w.path+placeSuffix, func(to io.Writer) error { return json.NewEncoder(to).Encode(w.at) })
}

// finish puts the whole file in place.
func (w *partialFile) finish() error {
	if err := w.file.Sync(); err != nil {
		return err
	}
	if err := putInPlace(w.path+partialSuffix, w.path); err != nil {
		return err
	}
	return removeAny(w.path + placeSuffix)
}
