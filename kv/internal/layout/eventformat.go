//go:build !licetnext

package layout

import "licet/licensing"

// newestEvents is the newest format version of events that this build knows. Builds with the tag licetnext stand for
// the next version in a test of two versions side by side: see TestNextVersion in cmd/licet.
const newestEvents = formatVersion

// eventsFormat is the format version of events that are stored.
func eventsFormat(*licensing.Event) byte { return formatVersion }
