package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// BuildLicet builds licet from the module of a folder, empty: of the working directory, with these flags of go build
// besides the usual flags, and puts the executable at a path. The executable has no symbol table.
func BuildLicet(ctx context.Context, folder, path string, flags ...string) error {
	return build(ctx, folder, "licet/cmd/licet", path, nil, flags...)
}

// BuildTool builds a program that a module other than the service's names as its tool, and puts the executable at a
// path. The flags are those of the programs that are released, so what they share is compiled once.
func BuildTool(ctx context.Context, path, modfile, program string) error {
	// The compiler saves time if it collects garbage less often.
	environment := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOGC=400")
	return build(ctx, "", program, path, environment, "-modfile="+modfile, "-trimpath")
}

// build builds a program in a folder and an environment; nil: that of this process. Go links the same executable once,
// in whichever process it is built, since go run keeps executables in Go's cache.
func build(ctx context.Context, folder, program, path string, environment []string, flags ...string) error {
	// Instead of the executable, run runs cp with two arguments: the executable and the path.
	args := slices.Concat([]string{"run", "-exec", "cp"}, flags, []string{program, path})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = folder, environment
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", program, err, out)
	}
	return nil
}
