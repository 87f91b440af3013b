package migrate

import (
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"licet/cmd/licet/internal/bulk"
)

// Settings say what becomes of values that only the seller knows.
type Settings struct {
	Products   map[string]string // product ids here, by product at the service; others stay as they are
	MaxDevices int               // of licenses without a limit; 0: any number
	// ExternalKeys is how the account matches external keys; see bulk.Import.
	ExternalKeys string
}

// Report says what a conversion did.
type Report struct {
	Licenses int            // in the file
	Written  int            // rows
	Left     int            // licenses that can't be imported
	Repeated int            // licenses whose key an earlier license of the file has
	Keyless  int            // without a license key
	Columns  map[string]int // how many rows have a value in each column
	Products map[string]int // how many rows each product of the service has
	Without  map[string]int // how many licenses lose each value that Licet has no place for
	Total    int            // how many licenses the service has counted; 0: unknown
}

// Left is a license that can't be imported.
type Left struct{ ID, Problem string }

// Convert writes the licenses in the file of the given path to rows, as a file for bulk.Import. It writes
// the licenses that can't be imported to left, with the reason.
//
// The same file and settings always give the same rows.
func (s *Service) Convert(path string, set Settings, rows, left io.Writer) (Report, error) {
	devices := map[string][]string{}
	err := s.pages(path, func(p page) error {
		for _, d := range p.devices {
			if d.id != "" && !slices.Contains(devices[d.license], d.id) {
				devices[d.license] = append(devices[d.license], d.id)
			}
		}
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	out, err := bulk.NewRowWriter(rows, set.ExternalKeys)
	if err != nil {
		return Report{}, err
	}
	c := converter{service: s, set: set, devices: devices, out: out, left: csv.NewWriter(left),
		seen:   map[[16]byte]struct{}{},
		report: Report{Columns: map[string]int{}, Products: map[string]int{}, Without: map[string]int{}}}
	if err := c.left.Write([]string{"id", "problem"}); err != nil {
		return Report{}, err
	}
	if err := s.pages(path, c.page); err != nil {
		return c.report, err
	}
	c.left.Flush()
	return c.report, cmp.Or(out.Flush(), c.left.Error())
}

// converter writes rows.
type converter struct {
	service *Service
	set     Settings
	devices map[string][]string
	seen    map[[16]byte]struct{} // hashes of the keys so far
	out     *bulk.RowWriter
	left    *csv.Writer
	report  Report
}

func (c *converter) page(p page) error {
	c.report.Total = cmp.Or(p.total, c.report.Total)
	for i := range p.licenses {
		if err := c.license(&p.licenses[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *converter) license(l *license) error {
	if strings.TrimSpace(l.key) == "" {
		c.report.Keyless++
		return nil
	}
	sum := sha256.Sum256([]byte(l.key))
	short := [16]byte(sum[:])
	if _, known := c.seen[short]; known {
		c.report.Repeated++ // pages move while licenses are sold, and each charge of a subscription is a sale
		return nil
	}
	c.seen[short] = struct{}{}
	c.report.Licenses++
	row := bulk.NewLicense{ExternalKey: l.key, ProductID: l.product, MaxDevices: l.maxDevices, ExpiresAt: l.expires,
		Status: l.state, StateReason: l.reason, Devices: c.devices[l.id]}
	if to, ok := c.set.Products[l.product]; ok {
		row.ProductID = to
	}
	if row.MaxDevices == 0 {
		row.MaxDevices = c.set.MaxDevices
	}
	c.report.Products[l.product] += 0 // known, also without rows
	var err error
	if row.Metadata, err = json.Marshal(l.metadata); err != nil {
		return err
	}
	problems, err := c.out.Write(row)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		c.report.Left++
		return c.left.Write([]string{l.id, explained(problems)})
	}
	c.count(l, &row)
	return nil
}

// count counts the values of a row that was written.
func (c *converter) count(l *license, row *bulk.NewLicense) {
	c.report.Written++
	c.report.Products[l.product]++
	for column, has := range map[string]bool{"external_key": true, "product_id": true,
		"max_devices": row.MaxDevices > 0, "expires_at": !row.ExpiresAt.IsZero(), "status": row.Status != "",
		"devices": len(row.Devices) > 0, "metadata": true} {
		if has {
			c.report.Columns[column]++
		}
	}
	for _, name := range l.without {
		c.report.Without[name]++
	}
}

// explained returns the problems of a row in one line.
func explained(problems []bulk.Problem) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = strings.TrimSpace(p.Column + " " + p.Text)
	}
	return strings.Join(texts, "; ")
}
