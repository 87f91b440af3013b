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

// Problem is one problem of a file.
type Problem struct {
	Line   int    // of the row or the cell; 0: the whole file
	Column string // empty: the whole row
	Text   string
}

// String returns the place and the text of the problem.
func (p Problem) String() string {
	switch {
	case p.Line == 0:
		return p.Text
	case p.Column == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return fmt.Sprintf("line %d, column %s: %s", p.Line, p.Column, p.Text)
}

// writable are the columns that an import uses. It ignores the other columns of an export, so that an export can be
// imported unchanged.
func writable() []string {
	return []string{idColumn, licenseKeyColumn, externalKeyColumn, productIDColumn, quantityColumn,
		maxDevicesColumn, expiresAtColumn, statusColumn, stateReasonColumn, devicesColumn, metadataColumn,
		entitlementsColumn, buyerEmailColumn, referenceColumn}
}

// table reads the rows of a CSV file.
type table struct {
	reader *csv.Reader
	names  []string       // of all columns, in the order of the file
	at     map[string]int // index of each writable column of the file
}

// errMalformed ends a table whose next row can't be found.
type errMalformed struct{ Problem }

// Error implements error.
func (e errMalformed) Error() string { return e.Problem.String() }

// openTable reads the header. If the header has problems, openTable returns them instead of a table.
func openTable(in io.Reader, separator rune, ignoreUnknown bool) (*table, []Problem, error) {
	t := &table{reader: csv.NewReader(newRowBytes(in)), at: map[string]int{}}
	t.reader.Comma = separator
	t.reader.FieldsPerRecord = -1
	header, err := t.reader.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, []Problem{{Text: "the file is empty: the first row must name the columns, such as " +
			"product_id,quantity"}}, nil
	case err != nil:
		return nil, nil, t.malformed(err)
	}
	return t, t.header(header, ignoreUnknown), nil
}

// header reads the names of the columns and returns their problems.
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
			bad("the column %s occurs twice", name)
		case name != "" && !slices.Contains(known, name) && !ignoreUnknown:
			bad("unknown column %q: use --ignore-unknown to ignore it", cell)
		}
		t.names = append(t.names, name)
		if slices.Contains(writable(), name) {
			t.at[name] = i
		}
	}
	_, grants := t.at[productIDColumn]
	_, byID := t.at[idColumn]
	_, byKey := t.at[licenseKeyColumn]
	if grants || byID || byKey {
		return problems
	}
	if len(cells) == 1 && strings.ContainsAny(cells[0], ";\t|") {
		return []Problem{{Line: line, Text: fmt.Sprintf("the only column is %q: if the separator is not %q, set "+
			"--separator", cells[0], string(t.reader.Comma))}}
	}
	bad("no column product_id, to grant licenses, and neither id nor license_key, to change licenses. The known "+
		"columns are %s; an export also has %s",
		strings.Join(writable(), ", "), strings.Join(readOnly(), ", "))
	return problems
}

// readOnly returns the columns of an export that an import ignores.
func readOnly() []string {
	return slices.DeleteFunc(Columns(), func(name string) bool { return slices.Contains(writable(), name) })
}

// record is one row of the file.
type record struct {
	line  int
	lines []int // of each cell
	cells []string
}

// next reads the next row that is not empty, and returns io.EOF at the end. A row with another number of cells than the
// header is a problem.
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
			continue // spreadsheets write empty rows
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
		return []Problem{{Line: r.line,
			Text: fmt.Sprintf("the row has %d cells, but the header has %d", len(r.cells), len(t.names))}}
	}
	var problems []Problem
	for i, cell := range r.cells {
		if !utf8.ValidString(cell) {
			problems = append(problems, Problem{r.lines[i], t.names[i], "must be UTF-8: save the file as CSV in UTF-8"})
		}
	}
	return problems
}

// cell returns the text of a writable column, or an empty string if the file has no such column.
func (t *table) cell(r *record, name string) string {
	i, ok := t.at[name]
	if !ok {
		return ""
	}
	return strings.TrimSpace(unguard(r.cells[i]))
}

// others returns all cells except the id and the license key, which have columns of their own in the results.
func (t *table) others(cells []string) []string {
	var others []string
	for i, cell := range cells {
		if t.names[i] != idColumn && t.names[i] != licenseKeyColumn {
			others = append(others, guard(unguard(cell)))
		}
	}
	return others
}

// line returns the line of a cell.
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
		return errMalformed{Problem{Line: endless.line,
			Text: endless.Error() + ". The following rows were not checked"}}
	case errors.Is(err, errUTF16):
		return errMalformed{Problem{Text: errUTF16.Error()}}
	case !errors.As(err, &parse):
		return err
	case errors.Is(err, csv.ErrQuote):
		return errMalformed{Problem{Line: parse.StartLine,
			Text: fmt.Sprintf(`a quote is not closed, or not doubled, at line %d, byte %d: inside quotes, write "" `+
				`for each ". The following rows were not checked`, parse.Line, parse.Column)}}
	case errors.Is(err, csv.ErrBareQuote):
		return errMalformed{Problem{Line: parse.StartLine,
			Text: fmt.Sprintf(`a quote is inside a cell without quotes, at line %d, byte %d: put the whole cell into `+
				`quotes and write "" for each ". The following rows were not checked`, parse.Line, parse.Column)}}
	}
	return errMalformed{Problem{Line: parse.StartLine,
		Text: parse.Err.Error() + ". The following rows were not checked"}}
}
