package peer

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"testing"
)

// TestVersionOfTheMessages: nodes of two versions that could not read each
// other's messages must refuse each other's hops, before anything is run: one that
// was run and whose reply can't be read leaves its callers in doubt.
func TestVersionOfTheMessages(t *testing.T) {
	shapes := fmt.Sprintf("%d %x", sealVersion,
		sha256.Sum256([]byte(shape(reflect.TypeFor[request]())+shape(reflect.TypeFor[reply]()))))[:18]
	if want := "2 d76e90f1c718bf17"; shapes != want {
		t.Errorf("requests or replies have changed: raise sealVersion, unless that was done since the last release, "+
			"and write %q here instead of %q", shapes, want)
	}
}

// shape tells what a message of a type consists of.
func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return t.Kind().String() + " " + shape(t.Elem())
	case reflect.Struct:
		text := "{"
		for i := range t.NumField() {
			text += shape(t.Field(i).Type) + " " + string(t.Field(i).Tag) + ";"
		}
		return text + "}"
	}
	return t.Kind().String()
}
