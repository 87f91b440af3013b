package service

import (
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

const (
	// maxSignedDocuments bounds the documents of one SignedDocuments.
	maxSignedDocuments = 64
	// maxSignedBytes bounds their bytes, without number 0: anybody may ask for any number.
	maxSignedBytes = 2 << 20
	// signedDocument is what a document takes besides its bytes.
	signedDocument = 200
)

// SignedDocuments are documents that are signed once and answered often, each by a number. Besides number 0, one is
// signed at a time: so a client that asks for many different documents keeps one processor busy at most. Documents that
// are signed already, and number 0, do not wait for that. The zero SignedDocuments are empty.
type SignedDocuments struct {
	signing [2]sync.Mutex // of number 0, and of the others; held while mu is taken, and not the other way round

	mu    sync.Mutex // guards what follows
	made  map[int64]SignedDocument
	bytes int // of all but number 0
}

// SignedDocument is a document, with its ETag. Callers must not change it.
type SignedDocument struct {
	Body   []byte
	Signed string // what is signed of a body that has more
	ETag   string
}

// Of returns the document with a number, and signs it if it is new. sign returns the document without its ETag. With
// too many documents, or too many bytes, Of forgets some of them, but not number 0.
func (d *SignedDocuments) Of(number int64, sign func() (SignedDocument, error)) (SignedDocument, error) {
	if made, ok := d.recall(number); ok {
		return made, nil
	}
	signing := &d.signing[min(uint64(number), 1)]
	signing.Lock()
	defer signing.Unlock()
	if made, ok := d.recall(number); ok { // another call was first
		return made, nil
	}
	made, err := sign()
	if err != nil {
		return SignedDocument{}, err
	}
	sum := sha256.Sum256(made.Body)
	made.ETag = `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	d.keep(number, made)
	return made, nil
}

func (d *SignedDocuments) recall(number int64) (made SignedDocument, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, ok = d.made[number]
	return made, ok
}

// keep remembers a document that is new, and forgets others for it.
func (d *SignedDocuments) keep(number int64, made SignedDocument) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		d.made = make(map[int64]SignedDocument)
	}
	if number != 0 {
		d.bytes += len(made.Body)
	}
	for old, document := range d.made {
		if len(d.made) < maxSignedDocuments && d.bytes <= maxSignedBytes {
			break
		}
		if old != 0 {
			d.bytes -= len(document.Body)
			delete(d.made, old)
		}
	}
	d.made[number] = made
}
