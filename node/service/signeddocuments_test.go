package service_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"
	"time"

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

// TestBytesOfSignedDocuments: whatever numbers are asked for, the documents take a bounded memory.
func TestBytesOfSignedDocuments(t *testing.T) {
	const size = 170 << 10 // of the longest increment of a list of revocations
	var documents service.SignedDocuments
	signed := 0
	get := func(number int64) {
		_, err := documents.Of(number, func() (service.SignedDocument, error) {
			signed++
			return service.SignedDocument{Body: make([]byte, size)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	get(0)
	for i := range int64(60) {
		get(1 + i)
	}
	before := signed
	for i := range int64(60) {
		get(60 - i)
	}
	kept := 60 - (signed - before)
	if kept < 1 || kept*size > 2<<20 {
		t.Errorf("%d of 60 documents of %d bytes were kept", kept, size)
	}
	before = signed
	if get(0); signed > before {
		t.Error("number 0 was forgotten")
	}
}

// TestSigningHoldsNobodyUp: while a document is signed, number 0 and the documents that are signed already are
// answered.
func TestSigningHoldsNobodyUp(t *testing.T) {
	var documents service.SignedDocuments
	get := func(number int64) {
		_, err := documents.Of(number, func() (service.SignedDocument, error) {
			return service.SignedDocument{Body: strconv.AppendInt(nil, number, 10)}, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	get(1)
	done := make(chan struct{})
	_, err := documents.Of(2, func() (none service.SignedDocument, err error) {
		go func() {
			defer close(done)
			get(1)
			get(0)
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("other documents wait")
		}
		return none, nil
	})
	if err != nil {
		t.Error(err)
	}
}
