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
)

const journalVersion = 1

// beginning is the first line of a journal.
type beginning struct {
	Version int       `json:"version"`
	Import  string    `json:"import"` // a random id, which all Idempotency-Keys begin with
	Started time.Time `json:"started"`
	SHA256  string    `json:"sha256"` // of the input
	Rows    int       `json:"rows"`
	Results string    `json:"results"`
}

// entry is every other line: a row is about to be sent, or this became of it.
type entry struct {
	Row      int       `json:"row"`           // from 1
	Try      int       `json:"try,omitempty"` // which Idempotency-Key it is sent under
	At       time.Time `json:"at,omitzero"`   // when that key was first used
	Result   result    `json:"result,omitempty"`
	Licenses []string  `json:"licenses,omitempty"`
	Kept     bool      `json:"kept,omitempty"` // the service keeps this refusal under its key
	Error    string    `json:"error,omitempty"`
}

// result is what became of a row.
type result string

const (
	granted   result = "granted"
	changed   result = "changed"
	unchanged result = "unchanged"
	skipped   result = "skipped" // somebody has found it granted
	refused   result = "refused"
	// unanswered: it may have been granted or not. Under the same key it is safe to
	// send again, as long as the service remembers that.
	unanswered result = "unanswered"
	// denied: somebody has found it not granted, after the service has forgotten.
	denied result = "denied"
)

func (r result) done() bool {
	return r == granted || r == changed || r == unchanged || r == skipped
}

// journal is what is known of an import, and the only thing that decides how it
// goes on after it broke off. Lines are only ever added. It may be used by
// several goroutines.
type journal struct {
	file *os.File

	mu      sync.Mutex
	size    int64
	failure error // of the file: from then on nothing can be trusted

	syncing sync.Mutex
	synced  int64 // how much of it is on disk
}

// readJournal reads what there is, line by line, with the place of each.
// A line that is cut short at the end was not yet on disk when the process was
// killed, so that nothing has come of it: it is cut off.
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

// torn tells whether a bad line is what a crash of the machine leaves at the end
// of a file.
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
			return fmt.Errorf("it can't be read: %w", err)
		}
		return begin(b)
	}
	var e entry
	if err := decoder.Decode(&e); err != nil {
		return fmt.Errorf("it can't be read: %w", err)
	}
	return take(e, at)
}

// add writes a line, and gives its place and where it ends.
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

// sync waits until the journal is on disk up to a place. Whoever comes first
// does it for all who came meanwhile.
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

// syncAll waits until all of it is on disk.
func (j *journal) syncAll() error {
	j.mu.Lock()
	size := j.size
	j.mu.Unlock()
	return j.sync(size)
}

// entry reads the line at a place.
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
