package handlers

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"licet/licensing"
)

// metadata checks an object whose members belong to the client.
func (c *checks) metadata(field string, in object) {
	if !c.describe(field, Limits{MaxProperties: licensing.MaxMetadataMembers, MaxNameLength: maxMetadataName}) {
		c.members(field, in, func(members, _ int) bool { return members <= licensing.MaxMetadataMembers })
	}
}

// metadataPatch checks a merge patch for metadata. Members that are null remove members, and so
// don't count. The patched metadata may have less room left.
func (c *checks) metadataPatch(field string, in object) {
	if !c.describe(field, Limits{MaxNameLength: maxMetadataName}) {
		c.members(field, in, func(members, nulls int) bool { return members-nulls <= licensing.MaxMetadataMembers })
	}
}

func (c *checks) members(field string, in object, fit func(members, nulls int) bool) {
	if !in.given {
		return
	}
	if len(in.value) > licensing.MaxMetadataBytes {
		c.add(field, fmt.Sprintf("must have at most %d bytes as compact JSON", licensing.MaxMetadataBytes))
		return
	}
	names, nulls, err := memberNames(string(in.value))
	if err != nil {
		c.add(field, "must be an object")
		return
	}
	if !fit(len(names), nulls) {
		c.add(field, fmt.Sprintf("must have at most %d members", licensing.MaxMetadataMembers))
		return
	}
	for _, name := range names {
		if name == "" || utf8.RuneCountInString(name) > maxMetadataName {
			c.add(field, fmt.Sprintf("must have member names of 1 to %d characters", maxMetadataName))
			return
		}
	}
}

// memberNames lists the names of a JSON object's members, and counts the members that are null.
func memberNames(compact string) (names []string, nulls int, err error) {
	decoder := jsontext.NewDecoder(strings.NewReader(compact))
	if _, err := decoder.ReadToken(); err != nil {
		return nil, 0, err
	}
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, 0, err
		}
		names = append(names, name.String())
		if decoder.PeekKind() == 'n' {
			nulls++
		}
		if err := decoder.SkipValue(); err != nil {
			return nil, 0, err
		}
	}
	return names, nulls, nil
}

// entitlements checks entitlements of a product, or, with nulls, of a license.
func (c *checks) entitlements(field string, in object, nulls bool) licensing.Entitlements {
	if c.describe(field, Limits{MaxProperties: licensing.MaxEntitlements}) || !in.given {
		return ""
	}
	parsed, err := licensing.ParseEntitlements(field, string(in.value), nulls)
	var refused *licensing.Error
	if errors.As(err, &refused) {
		for _, f := range refused.Fields {
			c.add(f.Field, f.Problem)
		}
	}
	return parsed
}

// ownEntitlements checks a license's own entitlements, or changes of them.
func (c *checks) ownEntitlements(field string, in object) licensing.Entitlements {
	own := c.entitlements(field, in, true)
	if problem := own.OwnProblem(); problem != "" {
		c.add(field, problem)
	}
	return own
}
