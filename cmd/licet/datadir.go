package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
)

// The files of a data directory, next to those of the store. All of them are
// the owner's alone.
const (
	masterFile = "master.keys"
	keyFile    = "dev-key.json"
	envFile    = "dev.env"

	privateFile fs.FileMode = 0o600
)

// devKey is the one test key pair of licet dev, as keyFile keeps it. The secret
// is not in it: it is derived.
type devKey struct {
	AccountID     string    `json:"account_id"`
	KeyID         string    `json:"key_id"`
	APIKey        string    `json:"api_key"`
	SecretVersion int       `json:"secret_version"`
	MasterID      string    `json:"master_id"`
	CreatedAt     time.Time `json:"created_at"`
}

// record is the key as the store keeps it.
func (k *devKey) record() licensing.APIKey {
	return licensing.APIKey{
		ID:            k.KeyID,
		Hash:          licensing.HashAPIKey(k.APIKey),
		Owner:         licensing.Owner{AccountID: k.AccountID, Mode: licensing.Test},
		Name:          "licet dev",
		Scopes:        []string{"*"},
		SecretVersion: k.SecretVersion,
		MasterID:      k.MasterID,
		CreatedAt:     k.CreatedAt,
	}
}

// loadMasterRing reads the master keys of a data directory. At the first start
// it makes one, but never in place of a lost one: the secret that was given out
// follows from it.
func loadMasterRing(dir string, entropy io.Reader) (licensing.MasterRing, error) {
	path := filepath.Join(dir, masterFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Stat(filepath.Join(dir, keyFile)); gone == nil {
			return licensing.MasterRing{}, fmt.Errorf("%s is gone, and the API secret with it: put it back from a copy, or remove %s too to get a new account", path, keyFile)
		}
		if err := makeMasterRing(path, entropy); err != nil {
			return licensing.MasterRing{}, fmt.Errorf("master keys: %w", err)
		}
	}
	return readMasterRing(path)
}

func readMasterRing(path string) (licensing.MasterRing, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return licensing.MasterRing{}, fmt.Errorf("master keys: %w", err)
	}
	ring, err := licensing.ParseMasterRing(string(text))
	if err != nil {
		return licensing.MasterRing{}, fmt.Errorf("%s: %w", path, err)
	}
	return ring, nil
}

func makeMasterRing(path string, entropy io.Reader) error {
	var key [licensing.MasterKeySize]byte
	if _, err := io.ReadFull(entropy, key[:]); err != nil {
		return err
	}
	master, err := licensing.NewMasterKey("m1", key)
	if err != nil {
		return err
	}
	return writeFile(path, []byte(master.Line()+"\n"))
}

// loadDevKey reads the key pair of a data directory. At the first start it
// makes one, for a new account; it is on disk before anybody can use it.
func loadDevKey(dir string, ring licensing.MasterRing, entropy io.Reader, now time.Time) (*devKey, error) {
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		key, err := newDevKey(ring, entropy, now)
		if err != nil {
			return nil, fmt.Errorf("make a key pair: %w", err)
		}
		if text, err = json.MarshalIndent(key, "", "  "); err != nil {
			return nil, fmt.Errorf("make a key pair: %w", err)
		}
		return key, writeFile(path, append(text, '\n'))
	case err != nil:
		return nil, fmt.Errorf("key pair: %w", err)
	}
	key := new(devKey)
	if err := json.Unmarshal(text, key); err != nil || key.AccountID == "" || key.KeyID == "" || key.APIKey == "" {
		// The decoder's error may quote what it read, and that is a secret.
		return nil, fmt.Errorf("%s is damaged: put it back from a copy, or remove it to get a new account", path)
	}
	return key, nil
}

func newDevKey(ring licensing.MasterRing, entropy io.Reader, now time.Time) (*devKey, error) {
	var secret [licensing.APIKeyEntropy]byte
	if _, err := io.ReadFull(entropy, secret[:]); err != nil {
		return nil, err
	}
	account, err := ulid.New(ulid.Timestamp(now), entropy)
	if err != nil {
		return nil, err
	}
	id, err := ulid.New(ulid.Timestamp(now), entropy)
	if err != nil {
		return nil, err
	}
	return &devKey{
		AccountID:     "acct_" + strings.ToLower(account.String()),
		KeyID:         "key_" + strings.ToLower(id.String()),
		APIKey:        licensing.NewAPIKeyText(licensing.Test, secret),
		SecretVersion: 1,
		MasterID:      ring.Current().ID,
		CreatedAt:     now.UTC().Truncate(time.Millisecond),
	}, nil
}

// devEnv is the text of envFile: what a shell needs to call the service, itself
// and by the programs that it starts.
func devEnv(url string, key *devKey, apiSecret string) []byte {
	return fmt.Appendf(nil, "LICET_URL=%s\nLICET_API_KEY=%s\nLICET_API_KEY_ID=%s\nLICET_API_SECRET=%s\n%s\n",
		url, key.APIKey, key.KeyID, apiSecret, exportLine)
}

const exportLine = "export LICET_URL LICET_API_KEY LICET_API_KEY_ID LICET_API_SECRET"

// removeFile removes a file that need not be there.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeFile puts a file in place whole or not at all, whatever happens
// meanwhile, and returns once it is on disk. Only one process writes, the one
// that holds the directory's lock, so the temporary name can be a fixed one.
func writeFile(path string, data []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, privateFile)
	if err != nil {
		return err
	}
	if err = file.Chmod(privateFile); err == nil { // it may have been there
		_, err = file.Write(data)
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
