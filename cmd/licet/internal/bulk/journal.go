package bulk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"licet/client"
)

const journalVersion = 2

// beginning is the first line of a journal.
type beginning struct {
	Version int       `json:"version"`
	Import  string    `json:"import"` // a random id, the start of all Idempotency-Keys
	Started time.Time `json:"started"`
	SHA256  string    `json:"sha256"` // of the input
	Rows    int       `json:"rows"`
	Results string    `json:"results"`
}

// readable returns an error if this version of licet can't read the journal.
func (b beginning) readable() error {
	if b.Version != journalVersion {
		return fmt.Errorf("another version of licet (%d) wrote it: finish the import with that version", b.Version)
	}
	return nil
}

// entry is every other line: a row that is about to be sent, or the result of a row.
type entry struct {
	Row      int       `json:"row"`           // from 1
	Try      int       `json:"try,omitempty"` // the number of the Idempotency-Key
	At       time.Time `json:"at,omitzero"`   // when the key was first used
	Result   result    `json:"result,omitempty"`
	Licenses []license `json:"licenses,omitempty"`
	Kept     bool      `json:"kept,omitempty"` // the service stores this refusal under the key
	Error    string    `json:"error,omitempty"`
}

// license names a license.
type license struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

func named(l *client.License) license { return license{l.ID, l.LicenseKey} }

// result is the result of a row.
type result string

const (
	granted   result = "granted"
	changed   result = "changed"
	unchanged result = "unchanged"
	exists    result = "exists"  // another license has the row's external key
	skipped   result = "skipped" // a person found it granted
	refused   result = "refused"
	// unanswered: the outcome is unknown. Sending the row again with the same key is safe while the service remembers
	// the key.
	unanswered result = "unanswered"
	// denied: a person found it not granted, after the service forgot the key.
	denied result = "denied"
)

func (r result) done() bool {
	return r == granted || r == changed || r == unchanged || r == exists || r == skipped
}

// journal records an import. It alone decides how an interrupted import continues. The file is append-only. A journal
// is safe for concurrent use.
type journal struct {
	file *os.File

	mu      sync.Mutex
	size    int64
	failure error // of the file; after it nothing more is written

	syncing sync.Mutex
	synced  int64 // bytes on disk
}

// readJournal reads the lines of a journal with their offsets. It removes an incomplete last line: that line was not on
// disk when the process was killed, so its row was not sent.
func readJournal(file *os.File, begin func(beginning) error, take func(entry, int64) error) (*journal, error) {
	if err := rewind(file); err != nil {
		return nil, err
	}
	in := bufio.NewReader(file)
	var at int64
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := readLine(line, number, at, begin, take); err != nil {
			if torn(line, in) {
				break
			}
			return nil, fmt.Errorf("%s, line %d: %w", file.Name(), number, err)
		}
		at += int64(len(line))
	}
	if err := file.Truncate(at); err != nil {
		return nil, err
	}
	_, err := file.Seek(at, io.SeekStart)
	return &journal{file: file, size: at, synced: at}, err
}

// torn reports whether an invalid line is what a crash of the machine leaves at the end of a file.
func torn(line []byte, rest *bufio.Reader) bool {
	_, err := rest.Peek(1)
	return errors.Is(err, io.EOF) && bytes.IndexByte(line, 0) >= 0
}

func readLine(line []byte, number int, at int64, begin func(beginning) error, take func(entry, int64) error) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if number == 1 {
		var b beginning
		if err := decoder.Decode(&b); err != nil {
			return fmt.Errorf("invalid line: %w", err)
		}
		return begin(b)
	}
	var e entry
	if err := decoder.Decode(&e); err != nil {
		return fmt.Errorf("invalid line: %w", err)
	}
	return take(e, at)
}

// add appends a line, and returns its offset and the offset of its end.
func (j *journal) add(line any) (at, end int64, err error) {
	text, err := json.Marshal(line)
	if err != nil {
		return 0, 0, err
	}
	text = append(text, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failure != nil {
		return 0, 0, j.failure
	}
	at = j.size
	if _, err := j.file.Write(text); err != nil {
		j.failure = fmt.Errorf("write %s: %w", j.file.Name(), err)
		return 0, 0, j.failure
	}
	j.size += int64(len(text))
	return at, j.size, nil
}

// sync waits until the journal is on disk up to an offset. The first caller writes for all callers that wait.
func (j *journal) sync(upTo int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= upTo {
		return nil
	}
	j.mu.Lock()
	size, err := j.size, j.failure
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.failure = fmt.Errorf("write %s to disk: %w", j.file.Name(), err)
		return j.failure
	}
	j.synced = size
	return nil
}

// syncAll waits until the whole journal is on disk.
func (j *journal) syncAll() error {
	j.mu.Lock()
	size := j.size
	j.mu.Unlock()
	return j.sync(size)
}

// entry reads the line at an offset.
func (j *journal) entry(at int64) (entry, error) {
	var e entry
	err := json.NewDecoder(io.NewSectionReader(j.file, at, j.end()-at)).Decode(&e)
	return e, err
}

func (j *journal) end() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}
