package bulk

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"licet/licensing"
)

// CheckSummary counts the changes that a file requests.
type CheckSummary struct {
	Rows     int
	Grants   int // rows that grant licenses
	Licenses int // how many they grant
	Changes  int // rows that change a license
}

// BadInputError reports that a file has problems. Import has reported each problem, and sent no row.
type BadInputError struct {
	Input    string
	Problems int
}

// Error implements error.
func (e *BadInputError) Error() string {
	return fmt.Sprintf("%s has %s; nothing of it was sent", e.Input, counted(int64(e.Problems), "problem"))
}

func counted(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// checked is a file with valid rows only.
type checked struct {
	CheckSummary
	states []state
	seen   map[string]int32 // the line of each id and license key
	byID   bool             // whether a row has an id
	byKey  []keyed          // rows with a license key and no id
}

// keyed is a row that names a license by its key alone.
type keyed struct {
	index, line int
	key         string
}

// Check validates all rows of the input and sends none.
func (im *Import) Check() (CheckSummary, error) {
	file, _, err := openInput(im.Input)
	if err != nil {
		return CheckSummary{}, err
	}
	defer file.Close()
	found, err := im.check(file, im.Now(), im.ExternalKeys)
	if err != nil {
		return CheckSummary{}, err
	}
	return found.CheckSummary, nil
}

// openInput opens a regular file and returns its hash.
func openInput(path string) (file *os.File, sum string, err error) {
	file, err = os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s must be a regular file: an import reads it several times", path)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, "", err
	}
	return file, hex.EncodeToString(hash.Sum(nil)), nil
}

// rows starts reading an input at its first row.
func (im *Import) rows(file *os.File) (*rules, []Problem, error) {
	if err := rewind(file); err != nil {
		return nil, nil, err
	}
	t, problems, err := openTable(file, im.Separator, im.IgnoreUnknown)
	return &rules{table: t}, problems, err
}

// check reads all rows and reports every problem. Granted licenses must expire after the given time, unless it is zero.
// matching is like Import.ExternalKeys.
func (im *Import) check(file *os.File, after time.Time, matching string) (*checked, error) {
	found, count := &checked{}, 0
	report := func(problems []Problem) {
		count += len(problems)
		for _, p := range problems {
			im.Problem(p)
		}
	}
	rows, problems, err := im.rows(file)
	report(problems)
	if err == nil && len(problems) == 0 {
		rows.after, rows.matching = after, licensing.KeyMatching(matching)
		rows.seen, rows.keys = map[string]int32{}, map[string]int32{}
		found.seen = rows.seen
		err = found.read(rows, report)
	}
	if malformed := (errMalformed{}); errors.As(err, &malformed) {
		report([]Problem{malformed.Problem})
		err = nil
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", im.Input, err)
	case count > 0:
		return nil, &BadInputError{im.Input, count}
	}
	return found, nil
}

func (c *checked) read(rows *rules, report func([]Problem)) error {
	for {
		r, problems, err := rows.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		report(problems)
		c.Rows++
		if r.changes() {
			c.Changes++
			c.byID = c.byID || r.id != ""
			if r.id == "" {
				c.byKey = append(c.byKey, keyed{r.index, rows.table.line(r.record, licenseKeyColumn), r.licenseKey})
			}
		} else {
			c.Grants++
			c.Licenses += r.grant.Quantity
		}
		c.states = append(c.states, state{hash: shortHash(r), line: int32(r.line), unique: r.grant.ExternalKey != ""})
	}
}

// shortHash returns a hash that detects changes of a row between its check and its import.
func shortHash(r *row) uint64 { return binary.BigEndian.Uint64(r.hash[:]) }
