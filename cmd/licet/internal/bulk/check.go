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
)

// CheckSummary tells what a file asks for.
type CheckSummary struct {
	Rows     int
	Grants   int // rows that grant licenses
	Licenses int // how many they grant
	Changes  int // rows that change a license
}

// BadInputError tells that a file has problems, each of which was reported, and
// that nothing of it was sent.
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

// checked is a file all rows of which are good.
type checked struct {
	CheckSummary
	states []state
}

// Check looks at all rows of the input, and sends none.
func (im *Import) Check() (CheckSummary, error) {
	file, _, err := openInput(im.Input)
	if err != nil {
		return CheckSummary{}, err
	}
	defer file.Close()
	found, err := im.check(file, im.Now())
	if err != nil {
		return CheckSummary{}, err
	}
	return found.CheckSummary, nil
}

// openInput opens a file that can be read several times, and gives its hash.
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
		return nil, "", fmt.Errorf("%s must be a file: it is read more than once, and an import that breaks off goes on with it", path)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, "", err
	}
	return file, hex.EncodeToString(hash.Sum(nil)), nil
}

// rows begins to read an input from its first row on.
func (im *Import) rows(file *os.File) (*rules, []Problem, error) {
	if err := rewind(file); err != nil {
		return nil, nil, err
	}
	t, problems, err := openTable(file, im.Separator, im.IgnoreUnknown)
	return &rules{table: t}, problems, err
}

// check reads all rows and reports every problem. What is granted must end after
// the given time, unless that is zero.
func (im *Import) check(file *os.File, after time.Time) (*checked, error) {
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
		rows.after, rows.seen = after, map[string]int32{}
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
		if r.licenseKey != "" {
			c.Changes++
		} else {
			c.Grants++
			c.Licenses += r.grant.Quantity
		}
		c.states = append(c.states, state{hash: shortHash(r), line: int32(r.line)})
	}
}

// shortHash tells whether a row is still what it was when it was checked.
func shortHash(r *row) uint64 { return binary.BigEndian.Uint64(r.hash[:]) }
