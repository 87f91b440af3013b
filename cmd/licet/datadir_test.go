package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"licet/licensing/keyring"
)

// storeCheck is the check key of a store.
var storeCheck = keyring.NewKeyCheck([]byte("check key"))

func TestKeyPairIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	load := func() (devKey, string) {
		t.Helper()
		ring, err := loadMasterRing(dir, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key, err := loadDevKey(dir, ring, storeCheck, rand.Reader, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		record := key.record()
		secret, err := ring.APISecret(&record)
		if err != nil {
			t.Fatal(err)
		}
		return *key, secret
	}
	key, secret := load()
	again, secretAgain := load()
	other := keyring.NewKeyCheck([]byte("of another store"))
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loadDevKey(dir, keyring.MasterRing{}, other, rand.Reader, time.Now()); err == nil ||
		!strings.Contains(err.Error(), "API key in "+path+" is mistyped or of another store") ||
		strings.Contains(err.Error(), key.APIKey) {
		t.Errorf("with another store: %v", err)
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, text) {
		t.Errorf("%s was changed", path)
	}
	if key != again || secret != secretAgain {
		t.Errorf("first %v, then %v", key, again)
	}
	if !strings.HasPrefix(key.AccountID, "acct_0") || key.AccountID != strings.ToLower(key.AccountID) ||
		!strings.HasPrefix(key.APIKey, "lk_test_") {
		t.Errorf("the key pair is %+v", key)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory contains %v (%v)", entries, err)
	}
}

// TestLostMasterKeysAreNotReplaced: licet dev refuses to start with another secret than the secret that it printed
// before.
func TestLostMasterKeysAreNotReplaced(t *testing.T) {
	dir := t.TempDir()
	ring, err := loadMasterRing(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loadDevKey(dir, ring, storeCheck, rand.Reader, time.Now()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, masterFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := loadMasterRing(dir, rand.Reader); err == nil || !strings.Contains(err.Error(), path+" is missing") {
		t.Errorf("got error %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a new one was made")
	}
}

// TestRestoredWithoutKeyFiles: without dev-key.json, licet dev says that the store has records of another account.
// Without master.keys too, it makes none and says which files to bring back.
func TestRestoredWithoutKeyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startProcess(t, dir)
	pair, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		t.Fatal(err)
	}
	var key devKey
	if err := json.Unmarshal(pair, &key); err != nil {
		t.Fatal(err)
	}
	first.terminate(t)
	const says = "sees no license of the other accounts"
	if strings.Contains(first.log.String(), says) {
		t.Error("the first start speaks of other accounts")
	}
	if err := os.Remove(filepath.Join(dir, keyFile)); err != nil {
		t.Fatal(err)
	}
	second := startProcess(t, dir)
	waitFor(t, func() bool { return strings.Contains(second.log.String(), says) })
	if !strings.Contains(second.log.String(), `"other_accounts":"`+key.AccountID+`"`) {
		t.Errorf("the log does not name %s", key.AccountID)
	}
	second.terminate(t)
	for _, file := range []string{keyFile, masterFile} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	third, err := launch(dir)
	if err == nil {
		third.kill()
	}
	if err == nil || !strings.Contains(err.Error(), masterFile+" is missing") ||
		!strings.Contains(err.Error(), "cp BACKUP/master.keys BACKUP/dev-key.json "+dir) {
		t.Errorf("without both files: %v", err)
	}
	if !missing(dir, masterFile) || !missing(dir, keyFile) {
		t.Error("files were made")
	}
}

func TestDamagedFilesAreNotReplaced(t *testing.T) {
	dir := t.TempDir()
	ring, err := loadMasterRing(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{}", `{"api_key":"lk_test_secret"}`, `{"api_key":lk_test_secret}`} {
		path := filepath.Join(dir, keyFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := loadDevKey(dir, ring, storeCheck, rand.Reader, time.Now())
		if err == nil || !strings.Contains(err.Error(), path+" is damaged") ||
			strings.Contains(err.Error(), "lk_test_secret") {
			t.Errorf("%q: got error %v", text, err)
		}
		if now, _ := os.ReadFile(path); string(now) != text {
			t.Errorf("%q was replaced with %q", text, now)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, masterFile), []byte("m1:short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadMasterRing(dir, rand.Reader); err == nil || !strings.Contains(err.Error(), masterFile) {
		t.Errorf("a damaged ring: got error %v", err)
	}
}

func TestWriteFileReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first and long", "second"} {
		if err := os.WriteFile(path+".new", []byte("left by a process that was killed"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := writeFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("got %q (%v), want %q", got, err, text)
		}
	}
}
