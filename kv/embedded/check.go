package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// CheckFile reads the structure of etcd's database in a data directory, as etcd does at its start: every page and the
// list of free pages. A missing database is no error, since etcd makes one from its log.
//
// bbolt reports most damage by a panic or a memory fault in a goroutine of its own, which no caller can recover from.
// So CheckFile belongs into a process of its own, whose end shows the damage.
func CheckFile(dir string) error {
	path := filepath.Join(dir, StoreDir, "member", "snap", "db")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := bbolt.Open(path, PrivateFile, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return db.Close()
}
