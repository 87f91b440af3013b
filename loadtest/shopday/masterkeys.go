package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"licet/client"
)

// The master key is replaced as docs/guides/keys.md says, in rounds, each with a
// restart of one node after the other.

// addMaster adds the new master key. Nothing is derived from it yet.
func (s *keyring) addMaster(ctx context.Context) error {
	_, err := s.stage.Licet.Command(ctx, "store", "master-key", "add", "--last", "--master-key-file",
		s.stage.Licet.Ring())
	return err
}

// turnRing moves the last master key of the file to the front.
func (s *keyring) turnRing() error {
	lines, err := s.ringLines()
	if err != nil {
		return err
	}
	last := len(lines) - 1
	return s.writeRing(append([]string{lines[last]}, lines[:last]...))
}

// dropMaster removes the last master key from the file.
func (s *keyring) dropMaster() error {
	lines, err := s.ringLines()
	if err != nil {
		return err
	}
	return s.writeRing(lines[:len(lines)-1])
}

func (s *keyring) ringLines() ([]string, error) {
	text, err := os.ReadFile(s.stage.Licet.Ring())
	if err != nil {
		return nil, fmt.Errorf("read the master keys: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
}

func (s *keyring) writeRing(lines []string) error {
	if err := os.WriteFile(s.stage.Licet.Ring(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the master keys: %w", err)
	}
	return nil
}

// retireMaster rotates every API key, so that nothing is derived from the old master key
// any more, and retires that. Before, retiring must be refused.
func (s *keyring) retireMaster(ctx context.Context) error {
	lines, err := s.ringLines()
	if err != nil {
		return err
	}
	old, _, _ := strings.Cut(lines[len(lines)-1], ":")
	retire := func() error {
		_, err := s.stage.Licet.Command(ctx, "store", "master-key", "retire", old, "--etcd-endpoints",
			s.stage.Endpoints(), "--master-key-file", s.stage.Licet.Ring())
		return err
	}
	if err := retire(); err == nil {
		s.ledger.Problem("a master key was retired while API secrets are derived from it")
	} else {
		s.ledger.Did("refused: retiring a master key in use")
	}
	made, keeper := s.keeper(ctx) // whose secret is derived from the new master key
	if keeper == nil {
		return nil
	}
	for id, key := range s.ledger.keys {
		if key.revoked || id == made.ID {
			continue
		}
		issued, _, err := s.rotate(ctx, keeper, id, 0)
		if !s.done("secrets rotated", key.name, err) {
			return err
		}
		if id == s.tillID {
			if s.till, err = s.client(s.tillKey, client.WithSigning(s.tillID, issued.APISecret)); err != nil {
				return err
			}
		}
	}
	if used, err := s.derivedFrom(ctx, old); err != nil || used != 0 {
		return errors.Join(err,
			fmt.Errorf("%d secrets are derived from the old master key after all were rotated", used))
	}
	if err := retire(); err != nil {
		return err
	}
	s.ledger.Did("master keys retired")
	return s.dropMaster()
}

// derivedFrom returns how many secrets are derived from a master key.
func (s *keyring) derivedFrom(ctx context.Context, id string) (int, error) {
	out, err := s.stage.Licet.Command(ctx, "store", "master-key", "status", "--output", "json", "--etcd-endpoints",
		s.stage.Endpoints())
	if err != nil {
		return 0, err
	}
	var status struct {
		Keys []struct {
			ID       string `json:"id"`
			Keys     int    `json:"api_keys"`
			Previous int    `json:"previous_secrets"`
		} `json:"master_keys"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return 0, fmt.Errorf("licet store master-key status: %w", err)
	}
	for _, key := range status.Keys {
		if key.ID == id {
			return key.Keys + key.Previous, nil
		}
	}
	return 0, fmt.Errorf("licet store master-key status does not have %s", id)
}
