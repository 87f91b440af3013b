package bulk

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"licet/client"
)

// exportPage is the number of licenses in a page, the maximum of the API.
const exportPage = 100

// Export writes licenses as CSV, one license in each row, newest first.
type Export struct {
	Service  *client.Client
	Filter   client.LicenseFilter
	Progress func(rows int64) // called with the number of rows so far; may be nil
	Now      func() time.Time
}

// To writes all rows to w. After an error, w has complete rows, but not all of them.
func (e *Export) To(ctx context.Context, w io.Writer) (rows int64, err error) {
	out := csv.NewWriter(w)
	if err := out.Write(Columns()); err != nil {
		return 0, err
	}
	err = e.pages(ctx, "", func(page []client.License, _ string) error {
		if err := writePage(out, page); err != nil {
			return err
		}
		rows += int64(len(page))
		e.tell(rows)
		return nil
	})
	if err == nil {
		out.Flush()
		err = out.Error()
	}
	return rows, err
}

// pages reads page after page, starting at a cursor, and passes each page with the cursor of the next page.
func (e *Export) pages(ctx context.Context, cursor string, take func(page []client.License, next string) error) error {
	for {
		list, err := e.Service.ListLicenses(ctx, e.Filter, client.Page{Limit: exportPage, Cursor: cursor})
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
func writePage(out *csv.Writer, page []client.License) error {
	for i := range page {
		if err := out.Write(exported(&page[i])); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (e *Export) tell(rows int64) {
	if e.Progress != nil {
		e.Progress(rows)
	}
}
