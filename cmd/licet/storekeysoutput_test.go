package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSecretIntoAClosedPipe writes to a pipe whose reader is gone: stderr names the new key, so that its owner can
// revoke or rotate the key.
func TestSecretIntoAClosedPipe(t *testing.T) {
	t.Parallel()
	flags, _ := testStore(t)
	key := createKey(t, flags)
	for problem, args := range map[string][]string{
		"but could not print it; revoke the key": {"store", "keys", "create", "--name",
			"shop", "--scopes", "*"},
		"created a new secret but could not print it; rotate the API key again": {"store", "keys", "rotate", key.ID},
	} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := licetCommand(slices.Concat(args, acme, flags)...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = writer, &stderr
		_ = cmd.Run()
		_ = writer.Close()
		if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), problem) {
			t.Errorf("exit code %d, %q", code, stderr.String())
		}
	}
}
