package process

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
)

// BuildLicet builds licet from the module of the working directory, with these flags of go build besides the usual
// flags, and puts the executable at a path. The executable has no symbol table. Go links the same executable once, in
// whichever process it is built, since go run keeps executables in Go's cache.
func BuildLicet(ctx context.Context, path string, flags ...string) error {
	// Instead of the executable, run runs cp with two arguments: the executable and the path.
	args := slices.Concat([]string{"run", "-exec", "cp"}, flags, []string{"licet/cmd/licet", path})
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build licet: %w: %s", err, out)
	}
	return nil
}
