package rig

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BuildCommit builds the program as it was at a commit of the repository that the
// working directory is in, and gives where it is. Its source and the program go to
// dir; neither the work tree nor the repository is touched.
func BuildCommit(ctx context.Context, dir, commit, buildFlags string) (binary string, err error) {
	source := filepath.Join(dir, "source")
	if err := unpackCommit(ctx, source, commit); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "licet")
	args := append([]string{"build", "-o", binary}, strings.Fields(buildFlags)...)
	build := exec.CommandContext(ctx, "go", append(args, "./cmd/licet")...)
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build licet as it was at %s: %w: %s", commit, err, out)
	}
	return binary, nil
}

// unpackCommit writes the files of a commit below a directory.
func unpackCommit(ctx context.Context, dir, commit string) error {
	if strings.HasPrefix(commit, "-") {
		return fmt.Errorf("%q is no commit", commit)
	}
	top := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel")
	root, err := top.Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	archive := exec.CommandContext(ctx, "git", "archive", "--format=tar", commit)
	archive.Dir = strings.TrimSpace(string(root)) // else it gives the working directory's files only
	var failure bytes.Buffer
	archive.Stderr = &failure
	files, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	if err := archive.Start(); err != nil {
		return fmt.Errorf("read commit %s: %w", commit, err)
	}
	err = unpack(dir, files)
	_, _ = io.Copy(io.Discard, files) // so that git can end
	if ended := archive.Wait(); ended != nil {
		return fmt.Errorf("read commit %s: %w: %s", commit, ended, strings.TrimSpace(failure.String()))
	}
	return err
}

// unpack writes the directories and plain files of an archive; there is nothing else
// that a build needs.
func unpack(dir string, from io.Reader) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(from); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read an archive: %w", err)
		}
		switch entry.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(strings.TrimSuffix(entry.Name, "/"), 0o700)
		case tar.TypeReg:
			err = write(root, entry.Name, archive)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", entry.Name, err)
		}
	}
}

func write(root *os.Root, name string, from io.Reader) error {
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
