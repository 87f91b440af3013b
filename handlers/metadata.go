package handlers

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"licet/licensing"
)

// metadata checks an object of a client's own members; their values are theirs.
func (p *problems) metadata(field string, in object) {
	p.members(field, in, func(members, _ int) bool { return members <= licensing.MaxMetadataMembers })
}

// metadataPatch checks an object that is merged into such a one. Members that are
// null remove others, and so don't count. What it is merged into may leave less
// room.
func (p *problems) metadataPatch(field string, in object) {
	p.members(field, in, func(members, nulls int) bool { return members-nulls <= licensing.MaxMetadataMembers })
}

func (p *problems) members(field string, in object, fit func(members, nulls int) bool) {
	if !in.given {
		return
	}
	if len(in.value) > licensing.MaxMetadataBytes {
		p.add(field, fmt.Sprintf("must have at most %d bytes as compact JSON", licensing.MaxMetadataBytes))
		return
	}
	names, nulls, err := memberNames(in.value)
	if err != nil {
		p.add(field, "must be an object")
		return
	}
	if !fit(len(names), nulls) {
		p.add(field, fmt.Sprintf("must have at most %d members", licensing.MaxMetadataMembers))
		return
	}
	for _, name := range names {
		if name == "" || utf8.RuneCountInString(name) > maxMetadataName {
			p.add(field, fmt.Sprintf("must have member names of 1 to %d characters", maxMetadataName))
			return
		}
	}
}

// memberNames lists the names of a JSON object's own members, and counts those
// that are null.
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
