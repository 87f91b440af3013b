package bulk

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll reads the rows of a file, and all that is wrong with it.
func readAll(text string) (rows []*record, problems []string) {
	note := func(list []Problem) {
		for _, p := range list {
			problems = append(problems, p.String())
		}
	}
	t, list, err := openTable(strings.NewReader(text), ',', false)
	note(list)
	for err == nil && t != nil && len(problems) == 0 {
		var r *record
		if r, list, err = t.next(); err == nil {
			note(list)
			rows = append(rows, r)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		problems = append(problems, err.Error())
	}
	return rows, problems
}

func TestLineEndsAndQuotes(t *testing.T) {
	want := [][]string{{"editor", `{"a":1,"b":"x"}`}, {"viewer", "two\nlines"}, {"last", ""}}
	lines := []int{2, 3, 6}
	plain := "product_id,metadata\neditor,\"{\"\"a\"\":1,\"\"b\"\":\"\"x\"\"}\"\nviewer,\"two\nlines\"\n\nlast,"
	for name, text := range map[string]string{
		"line feeds":        plain,
		"one more at end":   plain + "\n",
		"with returns":      strings.ReplaceAll(plain, "\n", "\r\n"),
		"byte order mark":   "\ufeff" + plain,
		"mark and returns":  "\ufeff" + strings.ReplaceAll(plain, "\n", "\r\n"),
		"empty rows at end": plain + "\n,\n , \n",
	} {
		for _, in := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			table, problems, err := openTable(in, ',', false)
			if err != nil || len(problems) > 0 {
				t.Fatalf("%s: %v %v", name, problems, err)
			}
			for i := range want {
				r, problems, err := table.next()
				if err != nil || len(problems) > 0 {
					t.Fatalf("%s: row %d: %v %v", name, i, problems, err)
				}
				if !reflect.DeepEqual(r.cells, want[i]) || r.line != lines[i] {
					t.Errorf("%s: line %d is %q, want line %d, %q", name, r.line, r.cells, lines[i], want[i])
				}
			}
			if _, _, err := table.next(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v instead of the end", name, err)
			}
		}
	}
}

// A carriage return alone ends a line outside of quotes, and is text inside.
func TestCarriageReturnsAlone(t *testing.T) {
	rows, problems := readAll("product_id,metadata\reditor,\"a\rb\"\r\rviewer,\r")
	if len(problems) > 0 || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), problems)
	}
	if rows[0].cells[1] != "a\rb" || rows[1].cells[0] != "viewer" || rows[1].line != 4 {
		t.Errorf("%q, and %q in line %d", rows[0].cells, rows[1].cells, rows[1].line)
	}
}

func TestMalformedFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "the file is empty"},
		{"only a mark", "\ufeff", "the file is empty"},
		{"UTF-16", "\xff\xfep\x00", "the file is UTF-16"},
		{"no useful column", "status,quantity\n", "line 1: no column product_id"},
		{"twice", "product_id,Product_ID\n", "line 1: the column product_id occurs twice"},
		{"unknown", "product_id,colour\n", `line 1: unknown column "colour": use --ignore-unknown`},
		{"no name", "product_id,\n", "line 1: column 2 has no name"},
		{"semicolons", "product_id;quantity\neditor;2\n", "--separator"},
		{"not closed", "product_id\n\"editor\nviewer\n", "line 2: a quote is not closed"},
		{"bare", "product_id\nedi\"tor\n", "line 2: a quote is inside a cell"},
		{"short", "product_id,quantity\neditor\n", "line 2: the row has 1 cells, but the header has 2"},
		{"long", "product_id,quantity\neditor,1,2\n", "line 2: the row has 3 cells, but the header has 2"},
		{"latin", "product_id\ncaf\xe9\n", "line 2, column product_id: must be UTF-8"},
		{"endless", "product_id\neditor\n\"" + strings.Repeat("x\n", maxRow/2),
			"line 3: the row has more than 1048576 bytes"},
	} {
		if _, problems := readAll(c.text); len(problems) != 1 || !strings.Contains(problems[0], c.want) {
			t.Errorf("%s: %q, want %q", c.name, problems, c.want)
		}
	}
}

// FuzzTable reads any file: it must not panic, and where the file is well formed
// it must be read as encoding/csv reads it.
func FuzzTable(f *testing.F) {
	for _, seed := range []string{
		"product_id,quantity\neditor,2\n", "\ufeffproduct_id\r\neditor\r\n", "product_id\reditor\r",
		"product_id,metadata\neditor,\"{\"\"a\"\":1}\"\n", "product_id\n\"a\nb\"\n", "license_key;x\n", "\"\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, problems := readAll(text)
		if len(problems) > 0 || strings.Contains(text, "\r") {
			return
		}
		plain := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
		plain.FieldsPerRecord = -1
		all, err := plain.ReadAll()
		if err != nil {
			t.Fatalf("it was taken, and is not well formed: %v", err)
		}
		var want []string
		for _, cells := range all[1:] {
			if strings.TrimSpace(strings.Join(cells, "")) != "" {
				want = append(want, fmt.Sprintf("%q", cells))
			}
		}
		var got []string
		lines := bytes.Count([]byte(text), []byte("\n")) + 1
		last := 1
		for _, r := range rows {
			got = append(got, fmt.Sprintf("%q", r.cells))
			if r.line <= last || r.line > lines {
				t.Errorf("a row is in line %d, after line %d, and there are %d", r.line, last, lines)
			}
			last = r.line
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	})
}
