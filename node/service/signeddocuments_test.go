package service_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"licet/node/service"
)

// TestSignedDocuments: each document is signed once, a failure is forgotten, and the number of documents is bounded.
func TestSignedDocuments(t *testing.T) {
	var documents service.SignedDocuments
	signed := 0
	get := func(number int64) service.SignedDocument {
		t.Helper()
		d, err := documents.Of(number, func() (service.SignedDocument, error) {
			signed++
			return service.SignedDocument{Body: strconv.AppendInt(nil, number, 10), Signed: "a part"}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	failure := errors.New("no entropy")
	fail := func() (none service.SignedDocument, err error) { return none, failure }
	if _, err := documents.Of(7, fail); !errors.Is(err, failure) {
		t.Errorf("a failure is %v", err)
	}
	first, again, other := get(7), get(7), get(8)
	if signed != 2 || !bytes.Equal(first.Body, again.Body) || first.ETag != again.ETag || first.ETag == other.ETag ||
		again.Signed != "a part" {
		t.Errorf("%d signatures for %+v, %+v and %+v", signed, first, again, other)
	}
	get(0)
	for i := range 1000 {
		get(int64(100 + i))
	}
	before := signed
	if get(0); signed != before {
		t.Error("number 0 was forgotten")
	}
	for i := range 1000 {
		get(int64(100 + i))
	}
	if kept := 1000 - (signed - before); kept > 64 {
		t.Errorf("%d of 1,000 documents were kept", kept)
	}
}
