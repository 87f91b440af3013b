package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
)

// profile is a service with the API key to call it.
type profile struct {
	URL       string `json:"url"`
	APIKey    string `json:"api_key"`
	APIKeyID  string `json:"api_key_id,omitempty"`
	APISecret string `json:"api_secret,omitempty"`
	Sign      bool   `json:"sign,omitempty"`
}

// profiles is the content of the file with all profiles.
type profiles struct {
	Current  string             `json:"current,omitempty"`
	Profiles map[string]profile `json:"profiles"`
}

var profileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (f *profiles) names() []string { return slices.Sorted(maps.Keys(f.Profiles)) }

// profilePath returns the path of the file with profiles, in the directory of the user.
func (s Setup) profilePath() (string, error) {
	dir, err := s.ConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the directory of profiles: %w", err)
	}
	return filepath.Join(dir, "licet", "profiles.json"), nil
}

// loadProfiles reads the profiles; without the file there are none. It refuses a file that other users can read: they
// may know its API keys already.
func (s Setup) loadProfiles() (*profiles, error) {
	file := &profiles{Profiles: map[string]profile{}}
	path, err := s.profilePath()
	if err != nil {
		return file, nil // without a directory for settings there are no profiles
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the profiles: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s contains API keys, and other users can read it (mode %o): run chmod 600, and "+
			"revoke the API keys if others have seen them", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the profiles: %w", err)
	}
	if err := json.Unmarshal(text, file); err != nil {
		// The error of the decoder may quote a secret.
		return nil, fmt.Errorf("%s is damaged: repair the file, or remove it to start without profiles", path)
	}
	if file.Profiles == nil {
		file.Profiles = map[string]profile{}
	}
	return file, nil
}

// saveProfiles writes the file atomically.
func (s Setup) saveProfiles(file *profiles) (err error) {
	path, err := s.profilePath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the directory of profiles: %w", err)
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("save the profiles: %w", err)
	}
	next, err := os.CreateTemp(filepath.Dir(path), "profiles-*.json") // its mode is 0600
	if err != nil {
		return fmt.Errorf("save the profiles: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(next.Name())
		}
	}()
	_, err = next.Write(append(text, '\n'))
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("save the profiles: %w", err)
	}
	return nil
}
