package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"licet/cmd/licet/internal/terminal"
)

// look is how tables and objects look on a terminal. The zero value is for files and pipes: no cell is cut, and no
// word has a color.
type look struct {
	width int // of the terminal, in cells; 0: rows may have any length
	color bool
}

// table prints rows page by page. The first page sets the columns and their widths. A wider cell on a later page shifts
// only its own row, as far as the row fits the terminal.
type table struct {
	w       io.Writer
	columns []string // names of members, the most important first
	look    look
	rows    [][]string
	widths  []int    // nil until the first page is printed
	most    int      // length to which cells are cut, unless their column is wider; 0: no cell is cut
	dropped []string // columns that do not fit the terminal
}

// cellLengths are the lengths to which cells are cut if a table does not fit the terminal. layOut takes the first
// length that fits. The last length is that of a time. The first column, which users copy, is cut to the first length
// only: ids and keys of the service are shorter.
var cellLengths = []int{40, 28, 20}

// gap separates the columns of a table.
const gap = "  "

func newTable(w io.Writer, columns []string, look look) *table {
	return &table{w: w, columns: columns, look: look}
}

func (t *table) add(item object) {
	row := make([]string, len(t.columns))
	for i, name := range t.columns {
		row[i] = item.cell(name)
	}
	t.rows = append(t.rows, row)
}

// flush prints the added rows, with the titles above the first page.
func (t *table) flush() error {
	var text strings.Builder
	if t.widths == nil {
		t.layOut()
		titles := make([]string, len(t.columns))
		for i, name := range t.columns {
			titles[i] = title(name)
		}
		text.WriteString(t.line(titles, terminal.Bold))
	}
	for _, row := range t.rows {
		text.WriteString(t.line(row, terminal.Plain))
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, text.String())
	return err
}

// layOut chooses the columns and their widths from the rows of the first page. It drops columns from the right until
// the table with its cells cut to the last of cellLengths fits the terminal, and then cuts the cells no more than
// necessary. The first column identifies the item: layOut never drops it.
func (t *table) layOut() {
	natural := make([]int, len(t.columns))
	for i, name := range t.columns {
		natural[i] = uniseg.StringWidth(title(name))
		for _, row := range t.rows {
			natural[i] = max(natural[i], uniseg.StringWidth(row[i]))
		}
	}
	t.widths = natural
	if t.look.width == 0 {
		return
	}
	t.cut(natural, cellLengths[len(cellLengths)-1])
	last := len(t.columns)
	for last > 1 && t.total() > t.look.width {
		last--
		t.widths = t.widths[:last]
	}
	t.columns, t.dropped, t.widths = t.columns[:last], t.columns[last:], natural[:last]
	for _, t.most = range cellLengths {
		if t.total() <= t.look.width {
			return
		}
		t.cut(natural[:last], t.most)
	}
}

// cut sets the widths of the columns to their natural widths, for cells that are cut to a length.
func (t *table) cut(natural []int, most int) {
	t.most = most
	t.widths = slices.Clone(natural)
	for i := range t.widths {
		t.widths[i] = min(t.widths[i], max(t.longest(i), uniseg.StringWidth(title(t.columns[i]))))
	}
}

// longest returns the length to which the cells of a column are cut.
func (t *table) longest(column int) int {
	if column == 0 {
		return cellLengths[0]
	}
	return t.most
}

// sayDropped names the columns that did not fit the terminal.
func sayDropped(stderr io.Writer, columns []string) {
	if len(columns) > 0 {
		fmt.Fprintf(stderr, "not shown, for lack of width: %s; --wide shows all columns\n",
			strings.ToLower(title(strings.Join(columns, ", "))))
	}
}

// total returns the width of a row.
func (t *table) total() int {
	all := len(gap) * (len(t.widths) - 1)
	for _, width := range t.widths {
		all += width
	}
	return all
}

// line returns a row with all its cells in a style. A row with a cell that is wider than its column must still fit the
// terminal: its other cells lose blanks, and then text. The first cell is whole all the same, up to its length.
func (t *table) line(cells []string, style terminal.Style) string {
	var line strings.Builder
	spare := t.look.width - t.total() // what cells may be wider than their columns; negative: they must be narrower
	for i, width := range t.widths {
		text := cells[i]
		if t.most > 0 {
			most := max(width, t.longest(i))
			if i > 0 {
				most = max(1, min(most, width+spare))
			}
			text = cutMiddle(text, most)
			taken := max(uniseg.StringWidth(text), min(width, width+spare))
			width, spare = taken, spare+width-taken
		}
		if i > 0 {
			line.WriteString(gap)
		}
		line.WriteString(t.look.paint(t.columns[i], text, style))
		if i < len(t.widths)-1 {
			line.WriteString(strings.Repeat(" ", max(0, width-uniseg.StringWidth(text))))
		}
	}
	return line.String() + "\n"
}

// paint returns the text of a member in a style; a status has the color of its meaning.
func (l look) paint(member, text string, style terminal.Style) string {
	if !l.color {
		return text
	}
	if member == "status" && style == terminal.Plain {
		style = statusStyles[text]
	}
	return style.Paint(text)
}

// statusStyles are the colors of statuses: green works, yellow waits or needs a decision, red has ended.
var statusStyles = map[string]terminal.Style{
	"activated": terminal.Green, "paid": terminal.Green, "active": terminal.Green, "enabled": terminal.Green,
	"delivered": terminal.Green,
	"unpaid":    terminal.Yellow, "suspended": terminal.Yellow, "pending": terminal.Yellow,
	"expired": terminal.Red, "revoked": terminal.Red, "canceled": terminal.Red, "refunded": terminal.Red,
	"dead": terminal.Red, "disabled": terminal.Red,
}

// cutMiddle cuts a text in the middle to a width, so that the ends of an id, which differ most, stay readable.
func cutMiddle(text string, most int) string {
	if uniseg.StringWidth(text) <= most {
		return text
	}
	var parts []string
	for g := uniseg.NewGraphemes(text); g.Next(); {
		parts = append(parts, g.Str())
	}
	head, tail := 0, len(parts)
	for room := most - 1; head < tail; { // one cell is for the ellipsis
		next := parts[head]
		fromTail := len(parts)-tail < head
		if fromTail {
			next = parts[tail-1]
		}
		if room -= uniseg.StringWidth(next); room < 0 {
			break
		}
		if fromTail {
			tail--
		} else {
			head++
		}
	}
	return strings.Join(parts[:head], "") + "…" + strings.Join(parts[tail:], "")
}
