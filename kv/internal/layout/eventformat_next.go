//go:build licetnext

package layout

import "licet/licensing"

const newestEvents = formatVersion + 1

// eventsFormat stores the suspension of a license of the product "next-format" in a format of its own.
func eventsFormat(last *licensing.Event) byte {
	if last.Type == licensing.EventLicenseSuspended && last.License.ProductID == "next-format" {
		return newestEvents
	}
	return formatVersion
}
