package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedDataAtStart: damage in etcd's files ends licet dev with one line that names the data directory, and with
// exit code 1, also where etcd panics or reads beyond the end of a file. So does licet store, and licet doctor
// reports the line. No file changes.
func TestDamagedDataAtStart(t *testing.T) {
	t.Parallel()
	p := startProcess(t, filepath.Join(t.TempDir(), "data"))
	p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`)
	p.terminate(t)
	logs, err := filepath.Glob(filepath.Join(p.dir, "etcd", "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	const database = "etcd/member/snap/db"
	log, err := filepath.Rel(p.dir, logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, file string
		damage     func(content []byte) []byte
		detail     string
	}{
		{"the database is cut", database, func(b []byte) []byte { return b[:8<<10] }, "unexpected fault address"},
		{"the head of the database is garbled", database, func(b []byte) []byte { return garble(b, 0, 16<<10) },
			"invalid database"},
		{"pages of the database are garbled", database, func(b []byte) []byte { return garble(b, 12<<10, 44<<10) },
			"panic: assertion failed"},
		// The bytes of a key: the log can be parsed, whatever else it has.
		{"the log is garbled", log, func(b []byte) []byte {
			at := bytes.Index(b, []byte("lc2/"))
			return garble(b, at, at+len("lc2/"))
		}, "crc mismatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir, os.DirFS(p.dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, c.file)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := c.damage(content)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, masterFile), 0o600); err != nil {
				t.Fatal(err)
			}
			commands := [][]string{{"dev", "--listen", "127.0.0.1:0"}, {"store", "verify"},
				{"store", "backup", filepath.Join(t.TempDir(), "backup.db")}}
			for _, args := range commands {
				cmd := licetCommand(append(args, "--data-dir", dir)...)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				_ = cmd.Run()
				said := stderr.String()
				if exit := cmd.ProcessState.ExitCode(); exit != exitFailed || strings.Count(said, "\n") != 1 ||
					!strings.HasPrefix(said, "licet: the etcd in "+dir+" has failed") ||
					!strings.Contains(said, c.detail) {
					t.Errorf("%v: exit code %d, stderr:\n%s", args, exit, said)
				}
			}
			doctor := licetCommand("doctor", "--data-dir", dir)
			if out, _ := doctor.CombinedOutput(); doctor.ProcessState.ExitCode() != exitFailed ||
				!strings.Contains(string(out), "the etcd in "+dir+" has failed") ||
				strings.Contains(string(out), "goroutine ") {
				t.Errorf("licet doctor: exit code %d\n%s", doctor.ProcessState.ExitCode(), out)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
				t.Errorf("the file changed: %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, envFile)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s exists: %v", envFile, err)
			}
		})
	}
}

// garble inverts the bytes from one offset to another.
func garble(content []byte, from, to int) []byte {
	content = bytes.Clone(content)
	for i := from; i < to; i++ {
		content[i] = ^content[i]
	}
	return content
}
