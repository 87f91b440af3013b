package service_test

import (
	"errors"
	"sync"
	"testing"

	"licet/node/service"
)

// TestSignedDocuments: each document is signed once, and a failure is forgotten.
func TestSignedDocuments(t *testing.T) {
	var documents service.SignedDocuments
	failure := errors.New("no entropy")
	fail := func() (none service.SignedDocument, err error) { return none, failure }
	if _, err := documents.Of(7, fail); !errors.Is(err, failure) {
		t.Errorf("a failure is %v", err)
	}
	signed := 0
	get := func(number int64) service.SignedDocument {
		t.Helper()
		d, err := documents.Of(number, func() (service.SignedDocument, error) {
			signed++
			return service.SignedDocument{Body: []byte{byte(number)}, Signed: "a part"}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first, again, other := get(7), get(7), get(8)
	if signed != 2 || &first.Body[0] != &again.Body[0] || first.ETag != again.ETag || first.ETag == other.ETag ||
		again.Signed != "a part" {
		t.Errorf("%d signatures for %+v, %+v and %+v", signed, first, again, other)
	}
}

// TestSignedTogether: callers who sign a document at the same time get one document.
func TestSignedTogether(t *testing.T) {
	var documents service.SignedDocuments
	var all, group sync.WaitGroup
	got := make([]service.SignedDocument, 4)
	all.Add(len(got))
	for i := range got {
		group.Go(func() {
			got[i], _ = documents.Of(1, func() (service.SignedDocument, error) {
				all.Done()
				all.Wait()
				return service.SignedDocument{Body: []byte{byte(i)}}, nil
			})
		})
	}
	group.Wait()
	for _, d := range got {
		if &d.Body[0] != &got[0].Body[0] || d.ETag != got[0].ETag {
			t.Errorf("callers got %+v and %+v", d, got[0])
		}
	}
}
