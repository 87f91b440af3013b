package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"licet/cmd/licet/internal/migrate"
)

// report prints what the import would do.
func (f *foreignImport) report(path string, r migrate.Report) error {
	missing, known := f.missingProducts(r)
	if f.json {
		return f.printJSON(map[string]any{"licenses": r.Licenses, "rows": r.Written, "not_importable": r.Left,
			"repeated": r.Repeated, "without_key": r.Keyless, "columns": r.Columns, "products": r.Products,
			"missing_products": missing, "lost": r.Without})
	}
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s. Nothing was sent.\n\n", f.summary(path, r))
	columns := [][]string{}
	for _, m := range f.service.Mapping {
		columns = append(columns, []string{m.From, m.Column, fmt.Sprint(r.Columns[m.Column])})
	}
	products := [][]string{}
	for _, from := range slices.Sorted(maps.Keys(r.Products)) {
		products = append(products, []string{from, cmp.Or(f.set.Products[from], from), fmt.Sprint(r.Products[from])})
	}
	lost := [][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Without)) {
		lost = append(lost, []string{name, fmt.Sprint(r.Without[name])})
	}
	var dropped []string
	there := strings.ToLower(strings.ReplaceAll(f.service.Title, " ", "_"))
	for _, t := range []struct {
		columns []string
		rows    [][]string
	}{
		{[]string{"value_at_" + there, "column", "licenses"}, columns},
		{[]string{"product_at_" + there, "product_id", "licenses"}, products},
		{[]string{"not_imported", "licenses"}, lost},
	} {
		if len(t.rows) == 0 {
			continue
		}
		printed := newTable(out, t.columns, f.look)
		for _, row := range t.rows {
			var item object
			for i, cell := range row {
				value, err := json.Marshal(cell)
				if err != nil {
					return err
				}
				item = append(item, member{t.columns[i], value})
			}
			printed.add(item)
		}
		if err := printed.flush(); err != nil {
			return err
		}
		out.WriteByte('\n')
		dropped = append(dropped, printed.dropped...)
	}
	switch {
	case !known:
		fmt.Fprint(out, "Whether the products exist is unknown: the service is not reachable, or the API key does not "+
			"have the scope products:read.\n\n")
	case len(missing) > 0:
		fmt.Fprintf(out, "These products do not exist: %s. In live mode, the service refuses their licenses: create "+
			"the products with licet products put. In test mode, the import creates them.\n\n", quoted(missing))
	}
	if err := f.write([]byte(strings.TrimSuffix(out.String(), "\n"))); err != nil {
		return err
	}
	sayDropped(f.stderr, dropped)
	return nil
}
