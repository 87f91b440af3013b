package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// backupName matches the name of a backup in a set: the time at which the backup began, so that names sort by time.
var backupName = regexp.MustCompile(`^licet-\d{8}T\d{6}Z\.db$`)

const backupTime = "licet-20060102T150405Z.db"

// Path returns the path of a backup that begins now, in a directory of backups.
func Path(dir string, now time.Time) string {
	return filepath.Join(dir, now.UTC().Format(backupTime))
}

// Prune removes the oldest backups in the directory of [Path] until keep are left, and the unfinished files of killed
// processes. Other files stay. So does the backup that was just made, even if its clock was wrong.
func Prune(made string, keep int) error {
	dir := filepath.Dir(made)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names []string
	var failures []error
	for _, entry := range entries {
		name := entry.Name()
		if backupName.MatchString(name) && entry.Type().IsRegular() && name != filepath.Base(made) {
			names = append(names, name)
		}
		if base, ok := unfinished(name); ok && backupName.MatchString(base) {
			failures = append(failures, removeAbandoned(filepath.Join(dir, name)))
		}
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-(keep-1))] {
		path := filepath.Join(dir, name)
		failures = append(failures, removeAny(path), removeAny(path+checksumSuffix))
	}
	return errors.Join(append(failures, syncDir(dir))...)
}

// unfinished returns the final name of an unfinished file.
func unfinished(name string) (string, bool) {
	base := name[:len(name)-len(filepath.Ext(name))]
	return base, filepath.Ext(name) == newSuffix
}

// removeAbandoned removes a file that no process writes any more.
func removeAbandoned(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // lockNew would create the file
	}
	file, err := lockNew(path)
	if err != nil {
		return nil // another process is writing the file, or has finished it
	}
	return errors.Join(removeAny(path), file.Close())
}
