package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"licet/client"
	"licet/cmd/licet/internal/migrate"
)

// warnOfProducts warns of each --product whose product no license of the file has.
func (f *foreignImport) warnOfProducts(path string, r migrate.Report) {
	for _, from := range slices.Sorted(maps.Keys(f.set.Products)) {
		if _, ok := r.Products[from]; !ok {
			fmt.Fprintf(f.stderr, "warning: --product %s=%s changes nothing: no license in %s has the product %q; the "+
				"products are %s\n", from, f.set.Products[from], path, from,
				quoted(slices.Sorted(maps.Keys(r.Products))))
		}
	}
}

// quoted returns the first texts of a list, in quotes.
func quoted(texts []string) string {
	const most = 20
	var all []string
	for _, text := range texts[:min(len(texts), most)] {
		all = append(all, fmt.Sprintf("%q", text))
	}
	if len(texts) > most {
		all = append(all, fmt.Sprintf("and %d more", len(texts)-most))
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// missingProducts returns the products of the rows that do not exist at the service. known is false if the service is
// not reachable, or the API key does not have the scope products:read.
func (f *foreignImport) missingProducts(r migrate.Report) (missing []string, known bool) {
	ctx, cancel := context.WithTimeout(f.ctx, settingsTimeout)
	defer cancel()
	products := map[string]bool{}
	for from, rows := range r.Products {
		if rows > 0 {
			products[cmp.Or(f.set.Products[from], from)] = true
		}
	}
	missing = []string{}
	for _, product := range slices.Sorted(maps.Keys(products)) {
		_, err := f.ask(func(api *client.Client, as ...client.CallOption) error {
			return only(api.Products.Get(ctx, product, as...))
		})
		switch {
		case client.HasReason(err, client.ReasonProductNotFound):
			missing = append(missing, product)
		case err != nil:
			return nil, false
		}
	}
	return missing, true
}
