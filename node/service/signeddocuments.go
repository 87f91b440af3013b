package service

import (
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

// SignedDocuments are documents that are signed once and answered often, each by a number. There must be few numbers:
// SignedDocuments forget none. The zero SignedDocuments are empty.
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

// Of returns the document with a number, and signs it if it is new. sign returns the document without its ETag. Callers
// who come at the same time may all sign, and get one document.
func (d *SignedDocuments) Of(number int64, sign func() (SignedDocument, error)) (SignedDocument, error) {
	if made, ok := d.recall(number); ok {
		return made, nil
	}
	made, err := sign()
	if err != nil {
		return SignedDocument{}, err
	}
	sum := sha256.Sum256(made.Body)
	made.ETag = `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	d.mu.Lock()
	defer d.mu.Unlock()
	if first, ok := d.made[number]; ok {
		return first, nil
	}
	if d.made == nil {
		d.made = make(map[int64]SignedDocument)
	}
	d.made[number] = made
	return made, nil
}

func (d *SignedDocuments) recall(number int64) (made SignedDocument, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, ok = d.made[number]
	return made, ok
}
