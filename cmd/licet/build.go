package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set by the linker: -ldflags "-X main.version=1.2.3 -X main.revision=0123abc".
var (
	version  = "dev"
	revision = ""
)

// build describes how this binary was built.
type build struct {
	version, revision, goVersion string
}

// readBuild returns the values that the linker set. For unset values it returns what the go command recorded.
func readBuild() build {
	b := build{version: version, revision: revision, goVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; b.version == "dev" && v != "" && v != "(devel)" {
		b.version = v
	}
	if b.revision == "" {
		b.revision = vcsRevision(info)
	}
	return b
}

// vcsRevision returns the revision that the go command recorded, or an empty string.
func vcsRevision(info *debug.BuildInfo) string {
	var revision, modified string
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				modified = "-modified"
			}
		}
	}
	if revision == "" {
		return ""
	}
	return revision + modified
}

// String returns the output of licet version.
func (b build) String() string {
	revision := b.revision
	if revision == "" {
		revision = "unknown"
	}
	return fmt.Sprintf("licet %s\nrevision %s\n%s %s/%s", b.version, revision, b.goVersion, runtime.GOOS,
		runtime.GOARCH)
}
