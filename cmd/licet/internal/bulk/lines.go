package bulk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxRow bounds the bytes of a row: a missing quote would turn the rest of the file into one row. The largest row that
// the service accepts is a tenth of maxRow.
const maxRow = 1 << 20

var errUTF16 = errors.New("the file is UTF-16: save it as CSV in UTF-8")

// errEndless reports a row longer than maxRow.
type errEndless struct{ line int }

// Error implements error.
func (errEndless) Error() string {
	return fmt.Sprintf("the row has more than %d bytes: a quote may be missing", maxRow)
}

// rowBytes converts a file for encoding/csv: it removes the byte order mark, and, outside of quotes, replaces the line
// ends of old spreadsheets, single carriage returns, by line feeds.
type rowBytes struct {
	in      *bufio.Reader
	started bool
	quoted  bool // inside of quotes
	row     int  // bytes of the row so far
	lines   int  // number of lines before the current line
	began   int  // number of lines before the row
}

func newRowBytes(in io.Reader) *rowBytes { return &rowBytes{in: bufio.NewReaderSize(in, 64<<10)} }

// Read implements io.Reader.
func (r *rowBytes) Read(p []byte) (int, error) {
	if !r.started {
		r.started = true
		if err := r.start(); err != nil {
			return 0, err
		}
	}
	n := 0
	for n < len(p) {
		if n > 0 && r.in.Buffered() == 0 {
			break // return these bytes before waiting for more
		}
		c, err := r.in.ReadByte()
		if err != nil {
			return n, err
		}
		if p[n], err = r.pass(c); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// start checks the first bytes of a file.
func (r *rowBytes) start() error {
	head, err := r.in.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, err := r.in.Discard(3)
		return err
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return errUTF16
	}
	return nil
}

func (r *rowBytes) pass(c byte) (byte, error) {
	if r.row++; r.row > maxRow {
		return 0, errEndless{r.began + 1}
	}
	if c == '\r' && !r.quoted {
		if next, err := r.in.Peek(1); err != nil || next[0] != '\n' {
			c = '\n'
		}
	}
	switch c {
	case '"':
		r.quoted = !r.quoted
	case '\n':
		r.lines++
		if !r.quoted {
			r.row, r.began = 0, r.lines
		}
	}
	return c, nil
}
