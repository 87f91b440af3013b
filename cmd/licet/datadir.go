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

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
)

// defaultDataDir is the data directory of licet dev, in the working directory.
const defaultDataDir = "./licet-data"

// The files of a data directory besides those of the store. Only the owner can read them.
const (
	masterFile = "master.keys"
	keyFile    = "dev-key.json"
	envFile    = "dev.env"

	privateFile fs.FileMode = 0o600
)

// devKey is the test key pair of licet dev, in the form of keyFile. It omits the secret, which is derived from the
// master key.
type devKey struct {
	AccountID     string    `json:"account_id"`
	KeyID         string    `json:"key_id"`
	APIKey        string    `json:"api_key"`
	SecretVersion int       `json:"secret_version"`
	MasterID      string    `json:"master_id"`
	CreatedAt     time.Time `json:"created_at"`
}

// record returns the API key in the form of the store.
func (k *devKey) record() licensing.APIKey {
	return licensing.APIKey{
		ID:            k.KeyID,
		Hash:          keyring.HashAPIKey(k.APIKey),
		Owner:         licensing.Owner{AccountID: k.AccountID, Mode: licensing.Test},
		Name:          "licet dev",
		Scopes:        []string{"*"},
		SecretVersion: k.SecretVersion,
		MasterID:      k.MasterID,
		CreatedAt:     k.CreatedAt,
	}
}

// missing reports whether a data directory lacks a file.
func missing(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return errors.Is(err, fs.ErrNotExist)
}

// loadMasterRing reads the master keys of a data directory. The first start creates a master key. loadMasterRing never
// replaces a lost master key, because the API secret is derived from it.
func loadMasterRing(dir string, entropy io.Reader) (keyring.MasterRing, error) {
	path := filepath.Join(dir, masterFile)
	if missing(dir, masterFile) {
		if !missing(dir, keyFile) {
			return keyring.MasterRing{}, fmt.Errorf("%s is missing, and the API secret is lost with it: restore "+
				"the file from a copy, or remove %s too to get a new account", path, keyFile)
		}
		if err := makeMasterRing(path, entropy); err != nil {
			return keyring.MasterRing{}, fmt.Errorf("master keys: %w", err)
		}
	}
	return readMasterRing(path)
}

// readMasterRing reads the master keys at path.
func readMasterRing(path string) (keyring.MasterRing, error) {
	file, err := os.Open(path)
	if err != nil {
		return keyring.MasterRing{}, fmt.Errorf("master keys: %w", err)
	}
	defer file.Close()
	if err := checkPrivate(file); err != nil {
		return keyring.MasterRing{}, fmt.Errorf("master keys: %w", err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return keyring.MasterRing{}, fmt.Errorf("master keys: %w", err)
	}
	ring, err := keyring.ParseMasterRing(string(text))
	if err != nil {
		return keyring.MasterRing{}, fmt.Errorf("%s: %w", path, err)
	}
	return ring, nil
}

// makeMasterRing creates a ring with one master key at path.
func makeMasterRing(path string, entropy io.Reader) error {
	var key [keyring.MasterKeySize]byte
	if _, err := io.ReadFull(entropy, key[:]); err != nil {
		return err
	}
	master, err := keyring.NewMasterKey("m1", key)
	if err != nil {
		return err
	}
	return writeFile(path, []byte(master.Line()+"\n"))
}

// loadDevKey reads the key pair of a data directory. The first start creates a key pair for a new account, and writes
// it to disk before any request can use it.
func loadDevKey(
	dir string, ring keyring.MasterRing, check keyring.KeyCheck, entropy io.Reader, now time.Time,
) (*devKey, error) {
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		key, err := newDevKey(ring, check, entropy, now)
		if err != nil {
			return nil, fmt.Errorf("create a key pair: %w", err)
		}
		if text, err = json.MarshalIndent(key, "", "  "); err != nil {
			return nil, fmt.Errorf("create a key pair: %w", err)
		}
		return key, writeFile(path, append(text, '\n'))
	case err != nil:
		return nil, fmt.Errorf("key pair: %w", err)
	}
	key := new(devKey)
	if err := json.Unmarshal(text, key); err != nil || key.AccountID == "" || key.KeyID == "" || key.APIKey == "" {
		// The error of the decoder may quote a secret.
		return nil, fmt.Errorf("%s is damaged: restore the file from a copy, or remove it to get a new account", path)
	}
	if !check.ValidAPIKey(key.APIKey) {
		return nil, fmt.Errorf("the API key in %s is mistyped or of another store: restore the file from a copy, or "+
			"remove it to get a new account", path)
	}
	return key, nil
}

// newDevKey returns a key pair for a new account.
func newDevKey(
	ring keyring.MasterRing, check keyring.KeyCheck, entropy io.Reader, now time.Time,
) (*devKey, error) {
	var secret [keyring.APIKeyEntropy]byte
	if _, err := io.ReadFull(entropy, secret[:]); err != nil {
		return nil, err
	}
	account, err := service.NewULID(now, entropy, "an account")
	if err != nil {
		return nil, err
	}
	id, err := service.NewULID(now, entropy, "an API key")
	if err != nil {
		return nil, err
	}
	owner := licensing.Owner{AccountID: "acct_" + strings.ToLower(account), Mode: licensing.Test}
	return &devKey{
		AccountID:     owner.AccountID,
		KeyID:         licensing.NewAPIKeyID(owner, id),
		APIKey:        check.MintAPIKey(owner, secret),
		SecretVersion: 1,
		MasterID:      ring.Current().ID,
		CreatedAt:     now.UTC().Truncate(time.Millisecond),
	}, nil
}

// devEnv returns the text of envFile, which sets and exports the variables that call the service.
func devEnv(url string, key *devKey, apiSecret string) []byte {
	return fmt.Appendf(nil, "LICET_URL=%s\nLICET_API_KEY=%s\nLICET_API_KEY_ID=%s\nLICET_API_SECRET=%s\n%s\n",
		url, key.APIKey, key.KeyID, apiSecret, exportLine)
}

const exportLine = "export LICET_URL LICET_API_KEY LICET_API_KEY_ID LICET_API_SECRET"

// removeFile removes a file, if the file exists.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeFile writes a file atomically, and returns once the file is on disk. The temporary name is fixed: only the
// process with the lock of the directory writes there.
func writeFile(path string, data []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, privateFile)
	if err != nil {
		return err
	}
	if err = file.Chmod(privateFile); err == nil { // the temporary file may have existed with another mode
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
