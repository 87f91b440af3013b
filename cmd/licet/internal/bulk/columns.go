package bulk

import (
	"encoding/json"
	"strconv"
	"time"

	"licet/client"
)

// The columns that an import uses.
const (
	idColumn           = "id"
	licenseKeyColumn   = "license_key"
	externalKeyColumn  = "external_key"
	productIDColumn    = "product_id"
	quantityColumn     = "quantity" // only in imports
	maxDevicesColumn   = "max_devices"
	expiresAtColumn    = "expires_at"
	statusColumn       = "status"
	stateReasonColumn  = "state_reason"
	devicesColumn      = "devices" // only in imports
	metadataColumn     = "metadata"
	entitlementsColumn = "entitlements"
	buyerEmailColumn   = "buyer_email"
	referenceColumn    = "customer_reference"
)

// Columns returns the columns of an export in order.
func Columns() []string {
	return []string{
		idColumn, licenseKeyColumn, externalKeyColumn, statusColumn, productIDColumn, "order_no", maxDevicesColumn,
		"current_devices", "created_at", "activated_at", expiresAtColumn, "suspended_at", "revoked_at",
		stateReasonColumn, metadataColumn, entitlementsColumn, buyerEmailColumn, referenceColumn,
		"trial", "grace_ends_at", "device_mode", "lease_seconds", "max_lease_seconds",
		"grace", "inactive_after", "device_match",
	}
}

// exported returns the row of a license in an export.
func exported(l *client.License) []string {
	return []string{
		guard(l.ID), guard(l.LicenseKey), guard(l.ExternalKey), guard(l.Status), guard(l.ProductID), guard(l.OrderNo),
		strconv.Itoa(l.MaxDevices), strconv.Itoa(l.CurrentDevices),
		formatTime(l.CreatedAt), formatTime(l.ActivatedAt), formatTime(l.ExpiresAt),
		formatTime(l.SuspendedAt), formatTime(l.RevokedAt),
		guard(l.StateReason), guard(string(l.Metadata)), guard(string(shown(l))), guard(l.BuyerEmail),
		guard(l.CustomerReference), strconv.FormatBool(l.Trial), formatTime(l.GraceEndsAt),
		guard(l.DeviceMode), seconds(l.LeaseSeconds), seconds(l.MaxLeaseSeconds),
		guard(l.Grace), guard(l.InactiveAfter), match(l.DeviceMatch),
	}
}

// match returns a JSON object, or an empty string for nil.
func match(m *client.DeviceMatch) string {
	if m == nil {
		return ""
	}
	text, _ := json.Marshal(m) // two numbers always encode
	return string(text)
}

// seconds returns a length, or an empty string for none.
func seconds(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// formatTime returns a time in the form of the API, or an empty string for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
