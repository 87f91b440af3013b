package bulk

import (
	"context"
	"errors"
	"fmt"
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
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ids, work := make(map[int]string), make(chan keyed)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range r.Parallel {
		workers.Go(func() {
			for row := range work {
				l, err := r.Service.License(ctx, row.key)
				switch {
				case err == nil:
					mu.Lock()
					ids[row.index] = l.ID
					mu.Unlock()
				case !aboutTheRow(err):
					stop(err)
				}
			}
		})
	}
	for _, row := range rows {
		if ctx.Err() != nil {
			break
		}
		work <- row
	}
	close(work)
	workers.Wait()
	return ids, context.Cause(ctx)
}

// aboutTheRow reports whether an error is the service's last word about one row: other rows may succeed.
func aboutTheRow(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Code != 0 && !answer.Retryable && answer.Status != 401 &&
		answer.Reason != client.ReasonForbidden
}
