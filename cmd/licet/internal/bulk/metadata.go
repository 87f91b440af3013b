package bulk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxMetadataMembers = 50
	maxMetadataName    = 40
	maxMetadataBytes   = 16 << 10
	// maxMetadataDepth is one less than how deeply a request may nest.
	maxMetadataDepth = 31
)

// object is a JSON object without white space; nil: none was given.
type object []byte

func (o object) raw() json.RawMessage { return json.RawMessage(o) }

// metadata reads the column metadata. What is merged into what there is may have
// more members, if they remove others.
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
	errNoObject = errors.New("it is none")
	errTooDeep  = fmt.Errorf("it nests deeper than %d levels", maxMetadataDepth)
	errTrailing = errors.New("something follows it")
)

// memberNames lists the names of an object's own members, and counts those that
// are null. It is as strict as the service is: a name may come only once in any
// object, for one.
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
	if decoder.PeekKind() != 0 {
		return nil, 0, errTrailing
	}
	return names, nulls, nil
}

// plainly takes the name of the library out of an error.
func plainly(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
}

// changes tells whether merging o into what there is changes anything.
func (o object) changes(present json.RawMessage) (bool, error) {
	patch, err := members(o)
	if err != nil {
		return false, err
	}
	have, err := members(present)
	if err != nil {
		return false, err
	}
	for name, value := range patch {
		old, there := have[name]
		if value == nil && there || value != nil && !(there && reflect.DeepEqual(old, value)) {
			return true, nil
		}
	}
	return false, nil
}

// members decodes an object with its numbers as they are written.
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
