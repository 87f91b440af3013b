package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// table prints rows page by page. The first page sets the widths of the columns; a wider cell on a later page shifts
// only its own row.
type table struct {
	w       io.Writer
	columns []string // names of members
	cut     bool     // truncate long cells
	rows    [][]string
	widths  []int // nil until the first page is printed
}

// maxCell is the length of a truncated cell.
const maxCell = 40

func newTable(w io.Writer, columns []string, cut bool) *table {
	return &table{w: w, columns: columns, cut: cut}
}

func (t *table) add(item object) {
	row := make([]string, len(t.columns))
	for i, name := range t.columns {
		row[i] = item.cell(name)
		// The first column identifies the item, and users copy it.
		if t.cut && i > 0 && utf8.RuneCountInString(row[i]) > maxCell {
			row[i] = string([]rune(row[i])[:maxCell-1]) + "…"
		}
	}
	t.rows = append(t.rows, row)
}

// flush prints the added rows, with the titles above the first page.
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
