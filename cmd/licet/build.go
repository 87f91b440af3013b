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

// build tells what this binary was made of.
type build struct {
	version, revision, goVersion string
}

// readBuild takes what the linker was told, and where it was told nothing, what
// the Go tool noted.
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

// String is what licet version prints.
func (b build) String() string {
	revision := b.revision
	if revision == "" {
		revision = "unknown"
	}
	return fmt.Sprintf("licet %s\nrevision %s\n%s %s/%s", b.version, revision, b.goVersion, runtime.GOOS, runtime.GOARCH)
}
