package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/licensing/keyring"
	"licet/node/service"
)

func newMasterKeyCommand(stdout, stderr io.Writer) *cobra.Command {
	cmd := cli.Group("master-key", newMasterKeyNew(stdout), newMasterKeyAdd(stdout, stderr),
		newMasterKeyStatus(stdout, stderr), newMasterKeyRetire(stdout, stderr))
	cmd.Short = "Create, list and retire master keys"
	cmd.Long = `Create, list and retire master keys. Nodes derive API secrets from master keys. The ring is a
file with one master key on each line. Nodes derive new secrets from the first line. All
nodes need the same ring. Keep copies of the ring, apart from the backups of etcd.`
	cmd.Example = `  licet store master-key add --master-key-file master.keys         add a master key; create the file
  licet store master-key add --last --master-key-file master.keys  add a master key for later use
  licet store master-key new                                       print a line for a ring elsewhere
  licet store master-key status --etcd-endpoints 10.0.0.1:2379     count the secrets of each master key`
	return cmd
}

func newMasterKeyNew(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:     "new",
		Short:   "Print a line for a ring: a new master key with a new id",
		Example: `  (umask 077; licet store master-key new >master.keys)`,
		Args:    cli.Arguments,
		RunE: func(*cobra.Command, []string) error {
			master, err := makeMasterKey(rand.Reader, time.Now())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(stdout, master.Line())
			return err
		},
	}
}

func newMasterKeyAdd(stdout, stderr io.Writer) *cobra.Command {
	var path string
	var last bool
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a new master key to a ring and print its id",
		Long: `Add a new master key to a ring: as the first line, from which nodes derive new secrets, or with
--last as the last line. The command replaces the file as a whole, or creates it; other
users can't read the file. Run the command as the user that runs the service.

Nodes read the ring at their start. If several nodes share the ring, every node must know the
master key before any node derives secrets from it:

  1. Add the master key with --last, give the file to every node, and restart the nodes.
  2. Move the line to the top, give the file to every node, and restart the nodes.`,
		Example: `  licet store master-key add --master-key-file master.keys
  licet store master-key add --last --master-key-file master.keys`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if path == "" {
				return badUsage("--master-key-file must name the file with the ring")
			}
			master, err := addMasterKey(path, last, rand.Reader, time.Now())
			if err != nil {
				return err
			}
			fmt.Fprintf(stderr, "%s has a new master key. Keep a copy of the file: the secrets derived from a master "+
				"key are lost if the master key is lost.\n", path)
			_, err = fmt.Fprintln(stdout, master.ID)
			return err
		},
	}
	cmd.Flags().StringVar(&path, "master-key-file", "", "`file` with the master keys, the current one first")
	cmd.Flags().BoolVar(&last, "last", false,
		"add the master key as the last line: nodes derive no secrets from it yet")
	nameVariables(cmd.Flags())
	return cmd
}

// makeMasterKey returns a new master key with a new id.
func makeMasterKey(entropy io.Reader, now time.Time) (keyring.MasterKey, error) {
	id, err := service.NewULID(now, entropy, "a master key")
	if err != nil {
		return keyring.MasterKey{}, err
	}
	var key [keyring.MasterKeySize]byte
	if _, err := io.ReadFull(entropy, key[:]); err != nil {
		return keyring.MasterKey{}, fmt.Errorf("make a master key: %w", err)
	}
	return keyring.NewMasterKey("mk_"+strings.ToLower(id), key)
}

// addMasterKey adds a new master key to the ring at path.
func addMasterKey(path string, last bool, entropy io.Reader, now time.Time) (keyring.MasterKey, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // replace the target, not the link
	}
	// The lock file keeps two processes from adding at once, which would lose a master key.
	lock := path + ".adding"
	file, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL|os.O_WRONLY, privateFile)
	switch {
	case errors.Is(err, fs.ErrExist):
		return keyring.MasterKey{},
			fmt.Errorf("another process is adding a key to %s; if no such process runs, remove %s", path, lock)
	case err != nil:
		return keyring.MasterKey{}, fmt.Errorf("master keys: %w", err)
	}
	defer func() { _ = os.Remove(lock) }()
	_ = file.Close()

	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return keyring.MasterKey{}, fmt.Errorf("master keys: %w", err)
	}
	master, err := makeMasterKey(entropy, now)
	if err != nil {
		return keyring.MasterKey{}, err
	}
	ring := strings.TrimRight(string(text), "\n") + "\n" + master.Line() + "\n"
	if !last || strings.TrimSpace(string(text)) == "" {
		ring = master.Line() + "\n" + string(text)
	}
	if _, err := keyring.ParseMasterRing(ring); err != nil {
		return keyring.MasterKey{}, fmt.Errorf("%s, with the new master key added: %w", path, err)
	}
	if err := writeFile(path, []byte(ring)); err != nil {
		return keyring.MasterKey{}, fmt.Errorf("master keys: %w", err)
	}
	return master, nil
}
