package bulk

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// resultColumns are the columns of the results before those of the input.
func resultColumns() []string { return []string{"line", "result", idColumn, licenseKeyColumn, "error"} }

// resultRows returns the rows of the results for one row of the input: one row for each license, or one without.
func resultRows(row *row, e entry) [][]string {
	licenses := e.Licenses
	if len(licenses) == 0 {
		licenses = []license{{row.id, row.licenseKey}}
	}
	rows := make([][]string, len(licenses))
	for i, l := range licenses {
		rows[i] = append([]string{fmt.Sprint(row.line), string(e.Result), l.ID, l.Key, guard(e.Error)}, row.others...)
	}
	return rows
}

// results is the file of results during a run. The file is for people: each run writes it again from the journal, at
// its start, and at its end in the order of the input.
type results struct {
	file   *os.File
	out    *csv.Writer
	synced time.Time
}

// resultsEvery is how often new rows are written to the file.
const resultsEvery = time.Second

func appendResults(path string) (*results, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, privateFile)
	if err != nil {
		return nil, err
	}
	return &results{file: file, out: csv.NewWriter(file)}, nil
}

func (r *results) add(rows [][]string, now time.Time) error {
	if err := r.out.WriteAll(rows); err != nil {
		return err
	}
	if now.Sub(r.synced) < resultsEvery {
		return nil
	}
	r.synced = now
	return r.file.Sync()
}

func (r *results) close() error { return errors.Join(r.file.Sync(), r.file.Close()) }

// arrange writes the results from the journal, in the order of the input, and reports each failed row.
func (r *run) arrange(tell func(Failure)) error {
	return ReplaceFile(r.Results, func(to io.Writer) error {
		rows, problems, err := r.rows(r.input)
		if err != nil || len(problems) > 0 {
			return errors.Join(errInputChanged, err)
		}
		out := csv.NewWriter(to)
		if err := out.Write(append(resultColumns(), rows.table.others(rows.table.names)...)); err != nil {
			return err
		}
		for range r.states {
			row, problems, err := rows.next()
			if err != nil || len(problems) > 0 || r.states[row.index].hash != shortHash(row) {
				return errors.Join(errInputChanged, err)
			}
			e, err := r.resultOf(row)
			if err != nil {
				return err
			}
			if e.Result == "" {
				continue
			}
			if tell != nil && (!e.Result.done() || e.Error != "") {
				tell(Failure{row.line, e.Error})
			}
			if err := out.WriteAll(resultRows(row, e)); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	})
}

// resultOf returns the result of a row; the zero entry if it has none.
func (r *run) resultOf(row *row) (e entry, err error) {
	s := &r.states[row.index]
	if s.at > 0 {
		if e, err = r.journal.entry(s.at); err != nil || e.Result == denied {
			return entry{}, err
		}
	}
	if s.status != inDoubt {
		return e, nil
	}
	text := "the same command sends the row again, under the same Idempotency-Key: it is not granted twice"
	switch {
	case s.lost(r.Now()):
		text = fmt.Sprintf("the row was sent at %s, and its outcome is unknown. The service has forgotten that "+
			"request by now, so sending the row again could grant it twice. "+
			"Look whether it was granted: licet licenses export --product-id %s lists the licenses with created_at; "+
			"those of this row were created from then on, and are not in %s. "+
			"If they are there, add --skip %d; if not, --resend %d",
			time.UnixMilli(s.first).UTC().Format(time.RFC3339), row.grant.ProductID, r.Results, s.line, s.line)
	case e.Error == "":
		text = "the response did not arrive; " + text
	}
	if e.Error != "" {
		text = e.Error + "; " + text
	}
	return entry{Result: unanswered, Error: text}, nil
}
