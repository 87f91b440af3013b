package peer

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"testing"
)

// TestVersionOfTheMessages: nodes of two versions with different messages must refuse each other's hops before they run
// any command: an unreadable reply to an executed hop would leave its callers in doubt.
func TestVersionOfTheMessages(t *testing.T) {
	shapes := fmt.Sprintf("%d %x", signatureVersion,
		sha256.Sum256([]byte(shape(reflect.TypeFor[request]())+shape(reflect.TypeFor[reply]()))))[:18]
	if want := "4 74cfc80e81ecfe34"; shapes != want {
		t.Errorf("requests or replies have changed: raise signatureVersion, unless that was done since the last "+
			"release, and write %q here instead of %q", shapes, want)
	}
}

// shape returns the parts of a message of a type.
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
