package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"licet/client"
)

// refuseRepeated refuses a file in which one row names a license by its id, and another row by its key. Only the
// service knows which key a license has, so refuseRepeated looks up the keys, if the file has both kinds of rows.
func (r *run) refuseRepeated(ctx context.Context, found *checked) error {
	if !found.byID {
		return nil
	}
	var err error
	if r.ids, err = r.lookUp(ctx, found.byKey); err != nil {
		return err
	}
	count := 0
	for _, row := range found.byKey {
		id := r.ids[row.index]
		if id == "" {
			continue
		}
		line, twice := found.seen[id]
		if !twice {
			found.seen[id] = int32(row.line)
			continue
		}
		count++
		r.Problem(Problem{row.line, licenseKeyColumn,
			fmt.Sprintf("names the license of line %d: only one row may change a license", line)})
	}
	if count > 0 {
		return &BadInputError{r.Input, count}
	}
	return nil
}

// lookUp returns the ids of the licenses that rows name by their keys, by the index of the row. It leaves out the rows
// whose keys the service refuses: these rows fail when their turn comes.
func (r *run) lookUp(ctx context.Context, rows []keyed) (map[int]string, error) {
	ids := make(map[int]string)
	var mu sync.Mutex
	err := inParallel(ctx, r.Parallel, slices.Values(rows), func(row keyed) error {
		l, err := r.Service.Licenses.Get(ctx, row.key)
		switch {
		case err == nil:
			mu.Lock()
			defer mu.Unlock()
			ids[row.index] = l.ID
		case !aboutTheRow(err):
			return err
		}
		return nil
	})
	return ids, err
}

// aboutTheRow reports whether an error is the service's last word about one row: other rows may succeed.
func aboutTheRow(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Code != 0 && !answer.Retryable && answer.Status != 401 &&
		answer.Reason != client.ReasonForbidden
}
