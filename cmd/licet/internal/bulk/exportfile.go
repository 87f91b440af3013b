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
	// placeEvery is how often the position is written, which waits for the disk twice. After a crash, the rows behind
	// the last position are read again.
	placeEvery = time.Second
)

// ExportSummary describes a finished export.
type ExportSummary struct {
	Rows   int64 // in the file
	Before int64 // of these, written by an earlier run
}

// place is the position of an export: the first Bytes of the file are the rows of all pages before Cursor.
type place struct {
	Version int             `json:"version"`
	Columns []string        `json:"columns"`
	Filter  json.RawMessage `json:"filter"`
	Cursor  string          `json:"cursor"`
	Bytes   int64           `json:"bytes"`
	Rows    int64           `json:"rows"`
}

// ToFile writes all rows to a file, which appears when it is complete and replaces an existing file. After an error or
// a crash the rows so far are in path.partial, and the same call continues after them. restart starts again instead.
//
// No row is lost or repeated: the position is written only after the rows before it are on disk, and the rows behind
// the last position are cut off. A cursor of the service continues at the same license, whatever was created meanwhile.
func (e *Export[Item, Filter]) ToFile(ctx context.Context, path string, restart bool) (sum ExportSummary, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return sum, fmt.Errorf("%s is not a regular file: name another file, or leave out --file to write to "+
			"standard output", path)
	}
	file, err := LockFile(path + partialSuffix)
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
	err = e.pages(ctx, at.Cursor, func(page []Item, next string) error {
		resumed = false
		if err := w.add(len(page), func(out *csv.Writer) error { return e.writePage(out, page) }, next); err != nil {
			return err
		}
		e.reportProgress(w.at.Rows)
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
		return sum, errors.Join(err, removeAny(path+partialSuffix)) // no position to continue from
	}
	if resumed && client.HasReason(err, client.ReasonInvalidField) {
		return sum, fmt.Errorf("the service does not know the position of %s, which may belong to another account or "+
			"mode: use the API key of the interrupted export, or start again with --restart: "+
			"%w", path+partialSuffix, err)
	}
	err = errors.Join(err, w.put())
	return sum, &BrokenOffError{fmt.Sprintf("after %s, written to %s", counted(w.at.Rows, "row"), path+partialSuffix),
		err}
}

// resume returns the position to continue from, and cuts the file off there.
func (e *Export[Item, Filter]) resume(file *os.File, path string, restart bool) (place, error) {
	filter, err := json.Marshal(e.Filter)
	at := place{Version: placeVersion, Columns: e.columns, Filter: filter}
	if err != nil {
		return at, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return at, err
	}
	text, err := os.ReadFile(path + placeSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (restart || size == 0):
		// Without rows, the position is a leftover of a finished export.
		return at, errors.Join(removeAny(path+placeSuffix), file.Truncate(0), rewind(file))
	case err != nil:
		return at, err
	}
	var old place
	if err := json.Unmarshal(text, &old); err != nil || old.Version != placeVersion || old.Bytes > size ||
		!slices.Equal(old.Columns, at.Columns) {
		return at, fmt.Errorf("%s and %s do not match, or another version wrote them: start again with --restart",
			path+partialSuffix, path+placeSuffix)
	}
	if !bytes.Equal(old.Filter, at.Filter) {
		return at, fmt.Errorf("%s is an interrupted export with other filters: finish it with those filters, start "+
			"again with --restart, or choose another file", path+partialSuffix)
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

// partialFile is an incomplete export.
type partialFile struct {
	file   *os.File
	path   string
	at     place // of the written rows
	now    func() time.Time
	placed time.Time // when the position was last written
}

// add writes a page of so many rows.
func (w *partialFile) add(n int, write func(*csv.Writer) error, next string) error {
	var rows bytes.Buffer
	out := csv.NewWriter(&rows)
	if w.at.Bytes == 0 {
		if err := out.Write(w.at.Columns); err != nil {
			return err
		}
	}
	if err := write(out); err != nil {
		return err
	}
	size, err := w.file.Write(rows.Bytes())
	if err != nil {
		return err
	}
	w.at.Bytes += int64(size)
	w.at.Rows += int64(n)
	w.at.Cursor = next
	if now := w.now(); next != "" && now.Sub(w.placed) >= placeEvery {
		w.placed = now
		return w.put()
	}
	return nil
}

// put writes the rows to disk, and then the position.
func (w *partialFile) put() error {
	if w.at.Cursor == "" {
		return nil // no rows yet, or no new rows
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	return ReplaceFile(w.path+placeSuffix, func(to io.Writer) error { return json.NewEncoder(to).Encode(w.at) })
}

// finish puts the complete file in place.
func (w *partialFile) finish() error {
	if err := w.file.Sync(); err != nil {
		return err
	}
	if err := putInPlace(w.path+partialSuffix, w.path); err != nil {
		return err
	}
	return removeAny(w.path + placeSuffix)
}
