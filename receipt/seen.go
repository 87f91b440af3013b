package receipt

// MaxSeenLicenses is how many licenses Seen remembers. One more license takes the place of the license that was seen
// longest ago.
const MaxSeenLicenses = 16

// Seen is the newest of what the device has seen. A program stores Seen along with the documents: without Seen, the
// program does not notice that older documents have replaced newer documents.
type Seen struct {
	Time int64 `json:"time"` // of the service, in Unix seconds
	Keys int64 `json:"keys"` // iat of the set of keys
	SeenLicense
	Epoch int64 `json:"epoch"` // of a list of revocations
	AsOf  int64 `json:"as_of"` // of a list of revocations; 0 in a state that an earlier version has stored
	// Earlier are licenses that the device has seen before the last one, the latest first: at most MaxSeenLicenses - 1.
	Earlier []SeenLicense `json:"earlier,omitempty"`
}

// SeenLicense is the newest that the device has seen of a license. In Seen, it is the license seen last.
type SeenLicense struct {
	LicenseID string `json:"license_id"`
	Revision  int64  `json:"revision"` // of a receipt
}

// newest returns the newest revision that the device has seen of a license; 0: none.
func (s Seen) newest(license string) int64 {
	var newest int64
	for _, each := range append([]SeenLicense{s.SeenLicense}, s.Earlier...) {
		if each.LicenseID == license {
			newest = max(newest, each.Revision)
		}
	}
	return newest
}

// with returns what the device has seen once it has accepted a receipt. It leaves s as it is.
func (s Seen) with(license string, revision int64) Seen {
	var earlier []SeenLicense
	for _, each := range append([]SeenLicense{s.SeenLicense}, s.Earlier...) {
		if each.LicenseID != "" && each.LicenseID != license && len(earlier) < MaxSeenLicenses-1 {
			earlier = append(earlier, each)
		}
	}
	s.SeenLicense, s.Earlier = SeenLicense{license, revision}, earlier
	return s
}
