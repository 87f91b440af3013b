package bulk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"licet/client"
)

const (
	maxMetadataMembers = 50
	maxMetadataName    = 40
	maxMetadataBytes   = 16 << 10
	// maxMetadataDepth is one less than the nesting limit of a request.
	maxMetadataDepth = 31
)

// object is a JSON object without white space; nil: none.
type object []byte

func (o object) raw() json.RawMessage { return json.RawMessage(o) }

// metadata parses the column metadata. Metadata of a change may have more members than the limit, if they remove
// others.
func (c *cells) metadata(merged bool) object {
	text := c.text(metadataColumn)
	if text == "" {
		return nil
	}
	names, nulls, err := memberNames(text)
	var compact bytes.Buffer
	if err == nil {
		err = json.Compact(&compact, []byte(text))
	}
	switch {
	case err != nil:
		c.bad(metadataColumn, "must be a JSON object, such as {\"seat\":\"3B\"}: %v", err)
		return nil
	case compact.Len() > maxMetadataBytes:
		c.bad(metadataColumn, "must have at most %d bytes", maxMetadataBytes)
		return nil
	case merged && len(names)-nulls > maxMetadataMembers, !merged && len(names) > maxMetadataMembers:
		c.bad(metadataColumn, "must have at most %d members", maxMetadataMembers)
		return nil
	}
	for _, name := range names {
		if name == "" || utf8.RuneCountInString(name) > maxMetadataName {
			c.bad(metadataColumn, "must have member names of 1 to %d characters", maxMetadataName)
			return nil
		}
	}
	return compact.Bytes()
}

var (
	errNoObject = errors.New("it is not an object")
	errTooDeep  = fmt.Errorf("it nests deeper than %d levels", maxMetadataDepth)
	errTrailing = errors.New("text follows the object")
)

// memberNames returns the names of the members of an object, and the number of members that are null. It is as strict
// as the service: for example, names must be unique in every object.
func memberNames(text string) (names []string, nulls int, err error) {
	decoder := jsontext.NewDecoder(strings.NewReader(text))
	if kind := decoder.PeekKind(); kind != '{' {
		if _, err := decoder.ReadValue(); err != nil {
			return nil, 0, plainly(err)
		}
		return nil, 0, errNoObject
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, 0, plainly(err)
	}
	name := true
	for decoder.StackDepth() > 0 {
		own := decoder.StackDepth() == 1
		token, err := decoder.ReadToken()
		switch {
		case err != nil:
			return nil, 0, plainly(err)
		case decoder.StackDepth() > maxMetadataDepth:
			return nil, 0, errTooDeep
		}
		switch {
		case own && name && token.Kind() == '"':
			names, name = append(names, token.String()), false
			continue
		case own && token.Kind() == 'n':
			nulls++
		}
		name = name || decoder.StackDepth() == 1
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, 0, errTrailing
	}
	return names, nulls, nil
}

// plainly returns the error without the name of the JSON library.
func plainly(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
}

// changes returns the members of o that change something if they are merged into the present object.
func (o object) changes(present []byte) (map[string]any, error) {
	patch, err := members(o)
	if err != nil {
		return nil, err
	}
	have, err := members(present)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(patch, func(name string, value any) bool {
		old, there := have[name]
		return value == nil && !there || value != nil && there && reflect.DeepEqual(old, value)
	})
	return patch, nil
}

// update returns the values of a row that differ from its license. Entitlements that have ended by now do not count.
func (r *row) update(l *client.License, now time.Time) (update client.LicenseUpdate, err error) {
	if r.maxDevices != nil && *r.maxDevices != l.MaxDevices {
		update.MaxDevices = r.maxDevices
	}
	if differs, err := r.metadata.changes(l.Metadata); err != nil {
		return update, err
	} else if len(differs) > 0 {
		update.Metadata = r.metadata.raw()
	}
	// Only what differs: the rest may be the product's.
	if differs, err := r.entitlements.changes(shown(l)); err != nil {
		return update, err
	} else if maps.DeleteFunc(differs, func(_ string, v any) bool { return ended(v, now) }); len(differs) > 0 {
		update.Entitlements = differs
	}
	if r.email != "" && r.email != l.BuyerEmail {
		update.BuyerEmail = &r.email
	}
	if r.reference != "" && r.reference != l.CustomerReference {
		update.CustomerReference = &r.reference
	}
	return update, nil
}

// members decodes an object without changing the text of numbers.
func members(text []byte) (map[string]any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var all map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&all)
	return all, err
}
