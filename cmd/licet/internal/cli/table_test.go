package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

// printTable prints pages of rows, each a list of cells.
func printTable(t *testing.T, look look, columns []string, pages ...[][]string) (printed string, dropped []string) {
	t.Helper()
	var out bytes.Buffer
	table := newTable(&out, columns, look)
	for _, rows := range pages {
		for _, row := range rows {
			var item object
			for i, name := range columns {
				text, err := json.Marshal(row[i])
				if err != nil {
					t.Fatal(err)
				}
				item = append(item, member{name, text})
			}
			table.add(item)
		}
		if err := table.flush(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String(), table.dropped
}

// TestGoldenTable prints pages that become wider, and the same rows on terminals of several widths.
func TestGoldenTable(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	grow := func(n int) [][]string {
		return [][]string{{strings.Repeat("c", n), strings.Repeat("ü", min(20*n, 90))}}
	}
	for _, width := range []int{0, 60} {
		text, _ := printTable(t, look{width: width}, []string{"id", "text"}, grow(1), grow(3), grow(50))
		all.WriteString(text + "\n")
		for line := range strings.Lines(text) {
			if cells := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); width > 0 && cells > width {
				t.Errorf("on a later page, a terminal of %d gets a line of %d cells: %s", width, cells, line)
			}
		}
	}
	columns := []string{"id", "status", "device_name", "order_no", "created_at"}
	rows := [][]string{
		{"LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1", "activated", "安娜的笔记本电脑", "ord_VQ01Q3G996SE003GW58W4CN32E1Z",
			"2030-01-02T03:04:05.678Z"},
		{"LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB2", "not_activated", "👩‍👩‍👧‍👦 family, in the living room",
			"ord_VQ01Q3G996SE003GW58W4CN32E1Z", "2030-01-02T03:04:05.678Z"},
	}
	for _, width := range []int{0, 160, 132, 120, 100, 80, 40, 1} {
		text, dropped := printTable(t, look{width: width}, columns, rows)
		all.WriteString(text + strings.Join(dropped, ",") + "\n\n")
		for line := range strings.Lines(text) {
			cells := uniseg.StringWidth(strings.TrimSuffix(line, "\n"))
			if width > 0 && cells > max(width, len(rows[0][0])) {
				t.Errorf("a terminal of %d gets a line of %d cells: %s", width, cells, line)
			}
			if !strings.HasPrefix(line, "ID") && !strings.Contains(line, "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB") {
				t.Errorf("a terminal of %d gets a line without the key, which users copy: %s", width, line)
			}
		}
	}
	text, _ := printTable(t, look{color: true}, columns[:2], rows)
	all.WriteString(strings.ReplaceAll(text, "\x1b", "ESC"))
	wantGolden(t, "table.txt", all.String())
}

func TestCutMiddle(t *testing.T) {
	t.Parallel()
	f := func(text string, most int, want string) {
		t.Helper()
		if got := cutMiddle(text, most); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
	f("", 3, "")
	f("abc", 3, "abc")
	f("abcd", 3, "a…d")
	f("abcdef", 4, "ab…f")
	f("abcdef", 1, "…")
	f("电脑电脑", 5, "电…脑")
	f("电脑电脑", 4, "电…")
}

// TestEmptyLists says of each list that it is empty, and what to do.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	f := func(want string, args ...string) {
		t.Helper()
		got := u.run(args...)
		if got.err != nil || got.stdout != "" || got.stderr != want+"\n" {
			t.Errorf("licet %q: %v, it printed %q, and %q", args, got.err, got.stdout, got.stderr)
		}
	}
	f("no orders yet: licet orders create --product-id editor --price 49.00 --currency USD creates an order",
		"orders", "list")
	f("no orders match --status; without filters, the command lists all orders", "orders", "list", "--status", "paid")
	f("no licenses match --product-id and --status; without filters, the command lists all licenses",
		"licenses", "list", "--product-id", "editor", "--status", "revoked", "--all")
	f("no licenses yet: licet licenses grant --product-id editor issues one, and so does a paid order",
		"licenses", "list", "--limit", "3")
	f("no products yet: licet products put editor --name Editor creates a product", "products", "list", "--all")
	f("no webhook endpoints yet: licet webhooks create https://shop.example.com/licet creates an endpoint",
		"webhooks", "list")
	f("no events yet: each change of an order or a license makes one; in test mode, try licet sandbox buy editor",
		"events", "list")
	f("no profiles yet: licet profile set NAME --url URL saves a service", "profile", "list")
	key := u.grant(1)[0]
	f("no devices yet: licet licenses activate LICENSE_KEY laptop-1 binds a device", "licenses", "devices", key)
	if got := u.run("orders", "list", "--output", "json"); got.stderr != "" ||
		!strings.Contains(got.stdout, `"orders":[]`) {
		t.Errorf("as JSON: %q, and %q", got.stdout, got.stderr)
	}
}
