package bulk

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	Line   int    // where its row begins, or the cell; 0: the whole file
	Column string // empty: the whole row
	Text   string
}

// String says where the problem is, and what it is.
func (p Problem) String() string {
	switch {
	case p.Line == 0:
		return p.Text
	case p.Column == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return fmt.Sprintf("line %d, column %s: %s", p.Line, p.Column, p.Text)
}

// writable are the columns that an import acts on. What else an export has is
// read over, so that its file can be imported as it is.
func writable() []string {
	return []string{licenseKeyColumn, productIDColumn, quantityColumn, maxDevicesColumn, expiresAtColumn, metadataColumn}
}

// table reads the rows of a file.
type table struct {
	reader *csv.Reader
	names  []string       // of all columns, in the file's order
	at     map[string]int // of the writable columns that there are
}

// errMalformed ends a table: where one row ends and the next begins can't be told.
type errMalformed struct{ Problem }

// Error implements error.
func (e errMalformed) Error() string { return e.Problem.String() }

// openTable reads the header. Its problems come as a list: then there is no table.
func openTable(in io.Reader, separator rune, ignoreUnknown bool) (*table, []Problem, error) {
	t := &table{reader: csv.NewReader(newRowBytes(in)), at: map[string]int{}}
	t.reader.Comma = separator
	t.reader.FieldsPerRecord = -1
	header, err := t.reader.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, []Problem{{Text: "the file is empty: it must begin with a row of column names, such as product_id,quantity"}}, nil
	case err != nil:
		return nil, nil, t.malformed(err)
	}
	return t, t.header(header, ignoreUnknown), nil
}

// header takes the names of the columns, and tells what is wrong with them.
func (t *table) header(cells []string, ignoreUnknown bool) []Problem {
	var problems []Problem
	line, _ := t.reader.FieldPos(0)
	bad := func(format string, args ...any) {
		problems = append(problems, Problem{Line: line, Text: fmt.Sprintf(format, args...)})
	}
	known := append(writable(), Columns()...)
	for i, cell := range cells {
		name := strings.ToLower(strings.TrimSpace(cell))
		switch {
		case name == "" && !ignoreUnknown:
			bad("column %d has no name", i+1)
		case name != "" && slices.Contains(t.names, name):
			bad("the column %s is there twice", name)
		case name != "" && !slices.Contains(known, name) && !ignoreUnknown:
			bad("the column %q is not known; --ignore-unknown reads over it", cell)
		}
		t.names = append(t.names, name)
		if slices.Contains(writable(), name) {
			t.at[name] = i
		}
	}
	_, grants := t.at[productIDColumn]
	_, changes := t.at[licenseKeyColumn]
	if grants || changes {
		return problems
	}
	if len(cells) == 1 && strings.ContainsAny(cells[0], ";\t|") {
		return []Problem{{Line: line, Text: fmt.Sprintf("there is but one column, %q: is there another separator than %q? --separator says which", cells[0], string(t.reader.Comma))}}
	}
	bad("there must be a column product_id, for licenses to grant, or license_key, for licenses to change. Known are %s; of an export also %s",
		strings.Join(writable(), ", "), strings.Join(readOnly(), ", "))
	return problems
}

// readOnly are the columns of an export that an import reads over.
func readOnly() []string {
	return slices.DeleteFunc(Columns(), func(name string) bool { return slices.Contains(writable(), name) })
}

// record is one row as it stands in the file.
type record struct {
	line  int
	lines []int // of each cell
	cells []string
}

// next reads the next row that has anything in it; io.EOF is the end. A row that
// does not fit the header is a problem.
func (t *table) next() (*record, []Problem, error) {
	for {
		cells, err := t.reader.Read()
		if errors.Is(err, io.EOF) {
			return nil, nil, io.EOF
		}
		if err != nil {
			return nil, nil, t.malformed(err)
		}
		if !slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) != "" }) {
			continue // spreadsheets leave such rows behind
		}
		r := &record{cells: cells, lines: make([]int, len(cells))}
		for i := range cells {
			r.lines[i], _ = t.reader.FieldPos(i)
		}
		r.line = r.lines[0]
		return r, t.fits(r), nil
	}
}

func (t *table) fits(r *record) []Problem {
	if len(r.cells) != len(t.names) {
		return []Problem{{Line: r.line, Text: fmt.Sprintf("it has %d cells, and the header has %d", len(r.cells), len(t.names))}}
	}
	var problems []Problem
	for i, cell := range r.cells {
		if !utf8.ValidString(cell) {
			problems = append(problems, Problem{r.lines[i], t.names[i], "must be UTF-8: save the file as CSV in UTF-8"})
		}
	}
	return problems
}

// cell gives the text of a writable column; empty where the file has none.
func (t *table) cell(r *record, name string) string {
	i, ok := t.at[name]
	if !ok {
		return ""
	}
	return strings.TrimSpace(unguard(r.cells[i]))
}

// others gives all cells but the license key, which the results have a column of
// their own for.
func (t *table) others(cells []string) []string {
	var others []string
	for i, cell := range cells {
		if t.names[i] != licenseKeyColumn {
			others = append(others, guard(unguard(cell)))
		}
	}
	return others
}

// line tells where a column's cell of a row is.
func (t *table) line(r *record, name string) int {
	if i, ok := t.at[name]; ok && i < len(r.lines) {
		return r.lines[i]
	}
	return r.line
}

func (t *table) malformed(err error) error {
	var parse *csv.ParseError
	var endless errEndless
	switch {
	case errors.As(err, &endless):
		return errMalformed{Problem{Line: endless.line, Text: endless.Error() + ". What follows was not looked at"}}
	case errors.Is(err, errUTF16):
		return errMalformed{Problem{Text: errUTF16.Error()}}
	case !errors.As(err, &parse):
		return err
	case errors.Is(err, csv.ErrQuote):
		return errMalformed{Problem{Line: parse.StartLine, Text: fmt.Sprintf(`a quote is not closed, or not doubled, at line %d, byte %d: inside of quotes, write "" for each ". What follows was not looked at`, parse.Line, parse.Column)}}
	case errors.Is(err, csv.ErrBareQuote):
		return errMalformed{Problem{Line: parse.StartLine, Text: fmt.Sprintf(`a quote stands inside of a cell without quotes, at line %d, byte %d: put the whole cell into quotes and write "" for each ". What follows was not looked at`, parse.Line, parse.Column)}}
	}
	return errMalformed{Problem{Line: parse.StartLine, Text: parse.Err.Error() + ". What follows was not looked at"}}
}
