package offline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// FileStore keeps the state of a program in a file that only its user reads.
type FileStore string

// Load returns the content of the file; nothing if there is none.
func (s FileStore) Load() ([]byte, error) {
	text, err := os.ReadFile(string(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// Save replaces the file in one step: after a crash, the file has the old content or the new one.
func (s FileStore) Save(text []byte) (err error) {
	dir := filepath.Dir(string(s))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(string(s))+".*") // only its user may read it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), string(s))
}
