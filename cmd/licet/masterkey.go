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

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"licet/licensing"
)

func newMasterKeyCommand(stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "master-key",
		Short: "Make master keys, tell how they are used, retire them",
		Long: `Make master keys, which API secrets are derived from. A file of them, the ring, has
one a line; new secrets are derived from the first. All nodes need the same ring,
and copies of it belong apart from the backups of etcd.`,
		Example: `  licet master-key add --master-key-file master.keys         the first key makes the file
  licet master-key add --last --master-key-file master.keys  one to be used later
  licet master-key new                                       a line to be put elsewhere
  licet master-key status --etcd-endpoints 10.0.0.1:2379     what is derived from which`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMasterKeyNew(stdout), newMasterKeyAdd(stdout, stderr), newMasterKeyStatus(stdout, stderr), newMasterKeyRetire(stdout, stderr))
	return cmd
}

func newMasterKeyNew(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:     "new",
		Short:   "Print a line of a ring, with a new key under a new id",
		Example: `  (umask 077; licet master-key new >master.keys)`,
		Args:    cobra.NoArgs,
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
		Short: "Add a new key to a ring, and print its id",
		Long: `Add a new key to a ring as its first line, so that new secrets are derived from it,
or with --last as one that is only known. The file is replaced whole or not at all,
closed to other users; it is made if there is none. Run it as the user that the
service runs as.

Nodes read the ring when they start. Where several share it, let all of them know
the key before one derives from it: add it with --last, give every node the file and
restart it, then move the line to the top and do so again.`,
		Example: `  licet master-key add --master-key-file master.keys
  licet master-key add --last --master-key-file master.keys`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if path == "" {
				return badUsage("--master-key-file must name the file to add a key to")
			}
			master, err := addMasterKey(path, last, rand.Reader, time.Now())
			if err != nil {
				return err
			}
			fmt.Fprintf(stderr, "%s has a new key; keep a copy, for what is derived from it is lost with it\n", path)
			_, err = fmt.Fprintln(stdout, master.ID)
			return err
		},
	}
	cmd.Flags().StringVar(&path, "master-key-file", "", "`file` with the master keys, the current one first")
	cmd.Flags().BoolVar(&last, "last", false, "put it last, so that nothing is derived from it yet")
	nameVariables(cmd.Flags())
	return cmd
}

func makeMasterKey(entropy io.Reader, now time.Time) (licensing.MasterKey, error) {
	id, err := ulid.New(ulid.Timestamp(now), entropy)
	if err != nil {
		return licensing.MasterKey{}, fmt.Errorf("make the id of a master key: %w", err)
	}
	var key [licensing.MasterKeySize]byte
	if _, err := io.ReadFull(entropy, key[:]); err != nil {
		return licensing.MasterKey{}, fmt.Errorf("make a master key: %w", err)
	}
	return licensing.NewMasterKey("mk_"+strings.ToLower(id.String()), key)
}

// addMasterKey puts a new key into the ring at path.
func addMasterKey(path string, last bool, entropy io.Reader, now time.Time) (licensing.MasterKey, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // so that the link stays one
	}
	// Two that add a key at once would lose one. Whoever has this file has
	// the ring, until it is gone.
	claim := path + ".adding"
	file, err := os.OpenFile(claim, os.O_CREATE|os.O_EXCL|os.O_WRONLY, privateFile)
	switch {
	case errors.Is(err, fs.ErrExist):
		return licensing.MasterKey{}, fmt.Errorf("another process is adding a key to %s; if there is none, remove %s", path, claim)
	case err != nil:
		return licensing.MasterKey{}, fmt.Errorf("master keys: %w", err)
	}
	defer func() { _ = os.Remove(claim) }()
	_ = file.Close()

	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return licensing.MasterKey{}, fmt.Errorf("master keys: %w", err)
	}
	master, err := makeMasterKey(entropy, now)
	if err != nil {
		return licensing.MasterKey{}, err
	}
	ring := strings.TrimRight(string(text), "\n") + "\n" + master.Line() + "\n"
	if !last || strings.TrimSpace(string(text)) == "" {
		ring = master.Line() + "\n" + string(text)
	}
	if _, err := licensing.ParseMasterRing(ring); err != nil {
		return licensing.MasterKey{}, fmt.Errorf("%s, with the new key in it: %w", path, err)
	}
	if err := writeFile(path, []byte(ring)); err != nil {
		return licensing.MasterKey{}, fmt.Errorf("master keys: %w", err)
	}
	return master, nil
}
