package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// compile builds the programs for one platform into a folder: licet, and on Linux also the programs of its image.
func (r *release) compile(p platform, folder string) error {
	packages := "./cmd/licet"
	if p.os == "linux" {
		packages = "./cmd/..."
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		fmt.Sprintf("-s -w -X main.version=%s -X main.revision=%s", r.version, r.revision),
		"-o", folder+string(filepath.Separator), packages)
	cmd.Dir = r.source
	// The variables that could change the program are set to Go's defaults. GOGC makes compilers faster, and changes no
	// byte of the program.
	cmd.Env = append(os.Environ(), "GOGC=400", "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=",
		"GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	return command(cmd)
}

// completion is a script of shell completion, and the name of its file in an archive.
type completion struct{ shell, file string }

func completions() []completion {
	return []completion{{"bash", "licet.bash"}, {"zsh", "_licet"}, {"fish", "licet.fish"}, {"powershell", "licet.ps1"}}
}

// completions writes the scripts of shell completion, which are the same on each platform, and returns their folder.
func (r *release) completions(work string) (string, error) {
	here := platform{runtime.GOOS, runtime.GOARCH}
	folder := filepath.Join(work, here.String())
	if !slices.Contains(r.platforms, here) {
		folder = filepath.Join(work, "here")
		if err := r.compile(here, folder); err != nil {
			return "", err
		}
	}
	scripts := filepath.Join(work, "completions")
	if err := os.Mkdir(scripts, 0o755); err != nil {
		return "", err
	}
	for _, c := range completions() {
		cmd := exec.Command(filepath.Join(folder, program(here)), "completion", c.shell)
		text, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", cmd, err)
		}
		if err := os.WriteFile(filepath.Join(scripts, c.file), text, 0o644); err != nil {
			return "", err
		}
	}
	return scripts, nil
}

// program returns the file name of licet on a platform.
func program(p platform) string {
	if p.os == "windows" {
		return "licet.exe"
	}
	return "licet"
}
