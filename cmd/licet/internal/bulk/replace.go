package bulk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReplaceInput writes the input of an import atomically. The rows must have external keys.
//
// If the import has begun with other rows, and none of them may have been granted, ReplaceInput removes its journal and
// its results: the import begins again. If rows may have been granted, ReplaceInput returns an error, and the input
// stays as it is. With dry, ReplaceInput changes no file of an import that has begun, and returns the same errors.
func ReplaceInput(path string, dry bool, write func(io.Writer) error) error {
	_, err := os.Stat(path + journalSuffix)
	begun := err == nil
	rows := func(to io.Writer) error {
		hash := sha256.New()
		if err := write(io.MultiWriter(to, hash)); err != nil || !begun {
			return err
		}
		return forget(path, hex.EncodeToString(hash.Sum(nil)), dry)
	}
	if dry && begun {
		return rows(io.Discard)
	}
	return ReplaceFile(path, rows)
}

// forget removes the journal and the results of an import that has begun with an input of another hash, unless dry.
func forget(path, hash string, dry bool) (err error) {
	name := path + journalSuffix
	book, err := LockFile(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	var began beginning
	sent := map[int]bool{} // rows that may have been granted
	_, err = readJournal(book, func(b beginning) error {
		began = b
		return b.readable()
	}, func(e entry, _ int64) error {
		if e.Result == refused || e.Result == denied || e.Result == exists {
			delete(sent, e.Row)
		} else {
			sent[e.Row] = true
		}
		return nil
	})
	switch {
	case err != nil || began.SHA256 == hash:
		return err
	case len(sent) > 0:
		return fmt.Errorf("the import of %s has begun with other rows, and %s may have been granted: repeat the "+
			"command with the flags and the file of that import. To import the rows of these flags instead, let "+
			"that import end, and then move %s and %s away: a license whose external key exists is not granted again "+
			"and stays as it is",
			path, counted(int64(len(sent)), "row"), name, began.Results)
	}
	if dry {
		return nil
	}
	return errors.Join(removeAny(began.Results), removeAny(name)) // the journal last: it names the results
}
