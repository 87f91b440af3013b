//go:build !licetnext

package licensing

// Builds with the tag licetnext stand for the next version in a test of two versions side by side: see
// TestNextVersion in cmd/licet. They record what this version doesn't know.

func laterTypes() []EventType { return nil }

func asLater(e Event) Event { return e }
