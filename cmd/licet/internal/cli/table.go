package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// table prints rows in columns as they come, without keeping them: the widths
// are those of the first page, and what is wider later moves its own row only.
type table struct {
	w       io.Writer
	columns []string // names of members
	cut     bool     // long cells are cut
	rows    [][]string
	widths  []int // nil until the first page is printed
}

// maxCell is how long a cell is that is cut.
const maxCell = 40

func newTable(w io.Writer, columns []string, cut bool) *table {
	return &table{w: w, columns: columns, cut: cut}
}

func (t *table) add(item object) {
	row := make([]string, len(t.columns))
	for i, name := range t.columns {
		row[i] = item.cell(name)
		// What is first names the item, to be copied from here.
		if t.cut && i > 0 && utf8.RuneCountInString(row[i]) > maxCell {
			row[i] = string([]rune(row[i])[:maxCell-1]) + "…"
		}
	}
	t.rows = append(t.rows, row)
}

// flush prints what was added, and above the first of it the titles.
func (t *table) flush() error {
	if t.widths == nil {
		titles := make([]string, len(t.columns))
		for i, name := range t.columns {
			titles[i] = title(name)
		}
		t.rows = append([][]string{titles}, t.rows...)
		t.widths = make([]int, len(t.columns))
		for _, row := range t.rows {
			for i, cell := range row {
				t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	var text strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(cell))+2))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, text.String())
	return err
}
