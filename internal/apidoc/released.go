package apidoc

import (
	"fmt"
	"slices"

	"github.com/pb33f/libopenapi"
)

// breaking returns the changes between a released document and its successor that break clients: all that do not only
// add something.
func breaking(released, current []byte) ([]string, error) {
	before, err := libopenapi.NewDocument(released)
	if err != nil {
		return nil, err
	}
	after, err := libopenapi.NewDocument(current)
	if err != nil {
		return nil, err
	}
	changes, err := libopenapi.CompareDocuments(before, after)
	if err != nil {
		return nil, fmt.Errorf("compare with the released document: %w", err)
	}
	if changes == nil {
		return nil, nil
	}
	var found []string
	for _, c := range changes.GetAllChanges() {
		if c.Breaking {
			found = append(found, fmt.Sprintf("%s %s: %q became %q", c.Path, c.Property, c.Original, c.New))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
