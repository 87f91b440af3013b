package service

import (
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

// maxSignedDocuments bounds the documents of one SignedDocuments.
const maxSignedDocuments = 64

// SignedDocuments are documents that are signed once and answered often, each by a number. One is signed at a time: so
// a client that asks for many different documents keeps one processor busy at most. The zero SignedDocuments are empty.
type SignedDocuments struct {
	mu   sync.Mutex
	made map[int64]SignedDocument
}

// SignedDocument is a document, with its ETag. Callers must not change it.
type SignedDocument struct {
	Body   []byte
	Signed string // what is signed of a body that has more
	ETag   string
}

// Of returns the document with a number, and signs it if it is new. sign returns the document without its ETag. With
// too many documents, Of forgets one of them, but not number 0.
func (d *SignedDocuments) Of(number int64, sign func() (SignedDocument, error)) (SignedDocument, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if made, ok := d.made[number]; ok {
		return made, nil
	}
	made, err := sign()
	if err != nil {
		return SignedDocument{}, err
	}
	if d.made == nil {
		d.made = make(map[int64]SignedDocument)
	}
	for old := range d.made {
		if len(d.made) < maxSignedDocuments {
			break
		}
		if old != 0 {
			delete(d.made, old)
		}
	}
	sum := sha256.Sum256(made.Body)
	made.ETag = `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	d.made[number] = made
	return made, nil
}
