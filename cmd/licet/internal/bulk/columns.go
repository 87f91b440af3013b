package bulk

import (
	"strconv"
	"time"

	"licet/client"
)

// The columns of an export, and what an import knows besides.
const (
	licenseKeyColumn = "license_key"
	productIDColumn  = "product_id"
	quantityColumn   = "quantity" // of an import alone
	maxDevicesColumn = "max_devices"
	expiresAtColumn  = "expires_at"
	metadataColumn   = "metadata"
)

// Columns lists the columns of an export in their order.
func Columns() []string {
	return []string{
		licenseKeyColumn, "status", productIDColumn, "order_no", maxDevicesColumn, "current_devices",
		"created_at", "activated_at", expiresAtColumn, "suspended_at", "revoked_at", "state_reason", metadataColumn,
	}
}

// exported is a license as a row of an export.
func exported(l *client.License) []string {
	return []string{
		guard(l.LicenseKey), guard(l.Status), guard(l.ProductID), guard(l.OrderNo),
		strconv.Itoa(l.MaxDevices), strconv.Itoa(l.CurrentDevices),
		stamp(l.CreatedAt), stamp(l.ActivatedAt), stamp(l.ExpiresAt), stamp(l.SuspendedAt), stamp(l.RevokedAt),
		guard(l.StateReason), guard(string(l.Metadata)),
	}
}

// stamp writes a time as the API does; nothing where there is none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
