package migrate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"licet/cmd/licet/internal/bulk"
)

// readGumroadCSV reads the sales that a seller exports from Gumroad's dashboard.
func readGumroadCSV(in io.Reader, add func(page) error) error {
	reader := csv.NewReader(in)
	reader.FieldsPerRecord = -1
	header, err := reader.Read()
	if err != nil {
		return err
	}
	header[0] = strings.TrimPrefix(header[0], "\uFEFF")
	at := map[string]int{}
	for i := len(header) - 1; i >= 0; i-- { // custom fields, which may repeat a name, come last
		at[header[i]] = i
	}
	const id, key, product = "Purchase ID", "License Key", "Product ID"
	for _, name := range []string{id, key, product} {
		if _, ok := at[name]; !ok {
			return fmt.Errorf("the first row has no column %q: export the sales from Gumroad's dashboard, and leave "+
				"the file as it is", name)
		}
	}
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		value := func(name string) string {
			i, ok := at[name]
			if !ok || i >= len(cells) {
				return ""
			}
			return unguarded(cells[i])
		}
		if value(id) == "Totals" {
			continue
		}
		l := license{id: value(id), key: value(key), product: value(product),
			metadata: map[string]any{"gumroad_sale_id": value(id), "order_id": value("Order Number")}}
		l.setState(value("License Key Enabled?") == "0", value("Fully Refunded?") == "1",
			value("Disputed?") == "1" && value("Dispute Won?") != "1")
		if l.state == "" && value("Access Revoked?") == "1" {
			l.state, l.reason = bulk.Suspended, "access revoked at Gumroad"
		}
		if end := value("Subscription End Date"); end != "" {
			if l.expires, err = parseDate(end); err != nil {
				line, _ := reader.FieldPos(0)
				return fmt.Errorf("line %d: column %q: %w", line, "Subscription End Date", err)
			}
		}
		l.without = noted(map[string]bool{
			seats: !slices.Contains([]string{"", "0", "1"}, value("Quantity")),
			"Recurrence: the subscription goes on at Gumroad": value("Recurrence") != "" && l.expires.IsZero(),
		})
		if err := add(page{licenses: []license{l}}); err != nil {
			return err
		}
	}
}

// unguarded removes the apostrophe that Gumroad puts before a text that a spreadsheet would run. It keeps any other
// apostrophe, which belongs to the text.
func unguarded(cell string) string {
	if len(cell) > 1 && cell[0] == '\'' && strings.IndexByte("-=+@%|\r\t", cell[1]) >= 0 {
		return cell[1:]
	}
	return cell
}

// parseDate parses a time in the forms that Ruby writes.
func parseDate(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700",
		time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a date", text)
}
