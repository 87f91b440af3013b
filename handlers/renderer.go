package handlers

import "licet/licensing"

// renderer makes the parts of answers that need more than a record: the texts of license keys, and links to pay pages.
type renderer struct {
	payLinks payLinks
	keys     licensing.LicenseKeys
}
