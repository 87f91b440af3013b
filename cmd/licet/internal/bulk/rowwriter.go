package bulk

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"licet/licensing"
)

// NewLicense is a license to grant, as a row of an import.
type NewLicense struct {
	ExternalKey, ProductID string
	MaxDevices             int // 0: any number
	ExpiresAt              time.Time
	Status, StateReason    string
	Devices                []string
	Metadata               json.RawMessage
}

// RowWriter writes a file for [Import].
type RowWriter struct {
	out   *csv.Writer
	rules rules
	keys  map[string]int32 // the line of each external key that was written
}

// NewRowWriter returns a RowWriter that has written the header. externalKeys is like [Import.ExternalKeys].
func NewRowWriter(to io.Writer, externalKeys string) (*RowWriter, error) {
	names := []string{externalKeyColumn, productIDColumn, maxDevicesColumn, expiresAtColumn, statusColumn,
		stateReasonColumn, devicesColumn, metadataColumn}
	t := &table{names: names, at: map[string]int{}}
	for i, name := range names {
		t.at[name] = i
	}
	w := &RowWriter{csv.NewWriter(to), rules{table: t, matching: licensing.KeyMatching(externalKeys)},
		map[string]int32{}}
	return w, w.out.Write(names)
}

// Write writes a row. If an import would refuse the row, Write returns the problems instead.
func (w *RowWriter) Write(l NewLicense) ([]Problem, error) {
	devices := ""
	if len(l.Devices) > 0 {
		text, err := json.Marshal(l.Devices)
		if err != nil {
			return nil, err
		}
		devices = string(text)
	}
	r := &record{line: w.rules.rows + 2, lines: make([]int, len(w.rules.table.names)), cells: []string{
		guard(l.ExternalKey), guard(l.ProductID), strconv.Itoa(l.MaxDevices), formatTime(l.ExpiresAt), l.Status,
		guard(l.StateReason), guard(devices), guard(string(l.Metadata)),
	}}
	problems := w.rules.table.fits(r)
	if len(problems) == 0 {
		c := cells{table: w.rules.table, record: r}
		made := &row{record: r}
		w.rules.read(&c, made)
		if len(c.problems) == 0 {
			w.rules.once(&c, w.keys, made.grant.ExternalKey)
		}
		problems = c.problems
	}
	if len(problems) > 0 {
		return problems, nil
	}
	w.rules.rows++
	return nil, w.out.Write(r.cells)
}

// Flush writes what is buffered.
func (w *RowWriter) Flush() error {
	w.out.Flush()
	return w.out.Error()
}
