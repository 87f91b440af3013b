package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	binFolder = "/usr/local/bin"
	// rootsFile is where Go looks for authorities first, on Linux.
	rootsFile = "/etc/ssl/certs/ca-certificates.crt"
	// user is a number, so that Kubernetes can verify that it is not root. Distroless images
	// use the same number.
	user = "65532:65532"
)

// stamp says from what the image was built, and when.
type stamp struct {
	version, revision string
	created           time.Time
}

// labels returns the labels that the OCI has names for.
func (s stamp) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "licet",
		"org.opencontainers.image.description": "A licensing and order service",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/licet/licet",
		"org.opencontainers.image.version":     s.version,
		"org.opencontainers.image.revision":    s.revision,
		"org.opencontainers.image.created":     s.created.Format(time.RFC3339),
	}
}

// build makes the image: the certificates of public authorities, which rarely change, in a
// layer below the programs. There is nothing else in it.
func build(programs []program, s stamp) (v1.Image, error) {
	certificates, err := roots()
	if err != nil {
		return nil, err
	}
	var files []file
	for _, p := range programs {
		files = append(files, file{path.Join(binFolder, p.name), 0o755, p.bytes})
	}
	config := v1.Config{
		User:         user,
		Env:          []string{"PATH=" + binFolder},
		Entrypoint:   []string{path.Join(binFolder, "licet")},
		Cmd:          []string{"serve"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Labels:       s.labels(),
	}
	var adds []mutate.Addendum
	for _, l := range []struct {
		what  string
		files []file
	}{
		{"certificates of public authorities", []file{{rootsFile, 0o644, certificates}}},
		{"programs", files},
	} {
		content, err := pack(l.files)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		adds = append(adds, mutate.Addendum{
			Layer:   layer,
			History: v1.History{CreatedBy: "make image: " + l.what, Created: v1.Time{Time: s.created}},
		})
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, adds...)
	if err != nil {
		return nil, err
	}
	have, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	have = have.DeepCopy()
	have.OS, have.Architecture = "linux", programs[0].setting("GOARCH")
	have.Created, have.Config = v1.Time{Time: s.created}, config
	return mutate.ConfigFile(image, have)
}

// file is a file of the image.
type file struct {
	path  string
	mode  int64
	bytes []byte
}

// pack returns a tar of files and of the folders above them. They belong to root, only root may write them, and
// their time is 1970.
func pack(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range folders(files) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.path, "/"), Mode: f.mode,
			Size: int64(len(f.bytes))}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.bytes); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// folders returns the folders above files, the upper ones first.
func folders(files []file) []string {
	var list []string
	for _, f := range files {
		for dir := path.Dir(f.path); dir != "/"; dir = path.Dir(dir) {
			list = append(list, strings.TrimPrefix(dir, "/"))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// roots returns the authorities that browsers trust, from Go's own list. It leaves out
// authorities that are trusted with conditions only: a file of certificates can't express
// these.
func roots() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
