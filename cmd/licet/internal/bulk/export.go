package bulk

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"licet/client"
)

// exportPage is the number of items in a page, the maximum of the API.
const exportPage = 100

// Export writes the items of a list as CSV, one item in each row, newest first. Make it with [ExportLicenses] or
// [ExportOrders].
type Export[Item, Filter any] struct {
	Filter   Filter
	Progress func(rows int64) // called with the number of rows so far; may be nil
	Now      func() time.Time

	columns []string
	row     func(*Item) []string
	read    func(context.Context, Filter, client.Page, ...client.CallOption) (*client.List[Item], error)
}

// ExportLicenses returns an export of licenses.
func ExportLicenses(service *client.Client) *Export[client.License, client.LicenseFilter] {
	return &Export[client.License, client.LicenseFilter]{Now: time.Now, columns: Columns(), row: exported,
		read: service.Licenses.List}
}

// ExportOrders returns an export of orders.
func ExportOrders(service *client.Client) *Export[client.Order, client.OrderFilter] {
	return &Export[client.Order, client.OrderFilter]{Now: time.Now, columns: OrderColumns(), row: exportedOrder,
		read: service.Orders.List}
}

// To writes all rows to w. After an error, w has complete rows, but not all of them.
func (e *Export[Item, Filter]) To(ctx context.Context, w io.Writer) (rows int64, err error) {
	out := csv.NewWriter(w)
	if err := out.Write(e.columns); err != nil {
		return 0, err
	}
	err = e.pages(ctx, "", func(page []Item, _ string) error {
		if err := e.writePage(out, page); err != nil {
			return err
		}
		rows += int64(len(page))
		e.reportProgress(rows)
		return nil
	})
	if err == nil {
		out.Flush()
		err = out.Error()
	}
	return rows, err
}

// pages reads page after page, starting at a cursor, and passes each page with the cursor of the next page.
func (e *Export[Item, Filter]) pages(
	ctx context.Context, cursor string, take func(page []Item, next string) error,
) error {
	for {
		list, err := e.read(ctx, e.Filter, client.Page{Limit: exportPage, Cursor: cursor})
		if err != nil {
			return err
		}
		if cursor != "" && list.NextCursor == cursor {
			return fmt.Errorf("the service returns the same page again and again")
		}
		if err := take(list.Items, list.NextCursor); err != nil {
			return err
		}
		if cursor = list.NextCursor; cursor == "" {
			return nil
		}
	}
}

// writePage writes rows and flushes them, because the next page may take a while.
func (e *Export[Item, Filter]) writePage(out *csv.Writer, page []Item) error {
	for i := range page {
		if err := out.Write(e.row(&page[i])); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (e *Export[Item, Filter]) reportProgress(rows int64) {
	if e.Progress != nil {
		e.Progress(rows)
	}
}
