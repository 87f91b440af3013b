package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// pagePath is the page whose commands are run.
const pagePath = "docs/guides/kubernetes.md"

// page is the commands of the page: each fence of sh has a name behind it, which readers do
// not see.
type page struct {
	root  string
	names []string // in the order of the page
	text  map[string]string
	ran   map[string]bool
}

func newPage(root string) (*page, error) {
	text, err := os.ReadFile(filepath.Join(root, pagePath))
	if err != nil {
		return nil, err
	}
	p := &page{root: root, ran: map[string]bool{}}
	p.names, p.text, err = blocks(string(text))
	return p, err
}

// blocks finds the fences of sh. A fence without a name is an error: no step could run its commands.
func blocks(text string) (names []string, found map[string]string, err error) {
	found = map[string]string{}
	fence := regexp.MustCompile("(?m)^```sh(.*)\n((?s:.*?))^```$")
	for _, match := range fence.FindAllStringSubmatch(text, -1) {
		name := strings.TrimSpace(match[1])
		switch {
		case name == "":
			return nil, nil, fmt.Errorf("%s has commands without a name behind the fence: %.60q", pagePath, match[2])
		case found[name] != "":
			return nil, nil, fmt.Errorf("%s has two blocks named %q", pagePath, name)
		}
		names, found[name] = append(names, name), match[2]
	}
	return names, found, nil
}

// unrun returns the blocks that no step has run.
func (p *page) unrun() []string {
	return slices.DeleteFunc(slices.Clone(p.names), func(name string) bool { return p.ran[name] })
}

// block runs one block as a reader of the page does: in the folder of the repository, in a
// shell that knows what earlier blocks have set. It returns the output, which is in the
// logs too.
func (r *walk) block(ctx context.Context, name string) string {
	text, ok := r.page.text[name]
	if !ok {
		stop("%s has no block named %q", pagePath, name)
	}
	r.page.ran[name] = true
	return r.shell(ctx, name, text)
}

// blocks runs blocks one after the other, until one fails.
func (r *walk) blocks(ctx context.Context, names ...string) {
	for _, name := range names {
		r.block(ctx, name)
	}
}

// shell runs lines as block does.
func (r *walk) shell(ctx context.Context, name, text string) string {
	state := filepath.Join(workDir, "shell")
	script := fmt.Sprintf("set -euo pipefail\n[[ ! -e %[1]s ]] || . %[1]s\n%[2]s\nexport -p >%[1]s\n", state, text)
	cmd := r.control.onNetwork(ctx, "bash", "-c", script)
	// Of two values of a variable the last one counts.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.pki.path("admin.kubeconfig"),
		"PATH="+r.tools.bin+":"+r.tools.folder+":"+os.Getenv("PATH"))
	cmd.Dir = r.cfg.root
	log := filepath.Join(r.logs, "page-"+name+".log")
	out := must(os.Create(log))
	defer out.Close()
	fmt.Fprintf(out, "%s\n--\n", text)
	cmd.Stdout, cmd.Stderr = out, out
	ownSession(cmd)
	stopIf(cmd.Start())
	err := cmd.Wait()
	// Ends the programs that the block has left in the background.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	printed := must(os.ReadFile(log))
	_, said, _ := strings.Cut(string(printed), "\n--\n")
	if err != nil {
		stop("the commands %q of %s: %w:\n%s", name, pagePath, err, tail(log, 25))
	}
	return said
}

// variable returns a variable that a block has exported.
func (r *walk) variable(name string) string {
	text := must(os.ReadFile(filepath.Join(workDir, "shell")))
	match := regexp.MustCompile(`(?m)^declare -x ` + name + `="(.*)"$`).FindStringSubmatch(string(text))
	if match == nil {
		stop("no block has exported %s", name)
	}
	return match[1]
}

// settings replaces the page's first block: it sets the same variables to this cluster's
// values.
func (r *walk) settings(values map[string]string) {
	const name = "settings"
	r.page.ran[name] = true
	var lines []string
	line := regexp.MustCompile(`(?m)^export ([A-Z_]+)=`)
	for _, match := range line.FindAllStringSubmatch(r.page.text[name], -1) {
		value, ok := values[match[1]]
		if !ok {
			stop("%s has readers set %s, and this check does not know to what", pagePath, match[1])
		}
		lines = append(lines, fmt.Sprintf("declare -x %s=%q", match[1], value))
	}
	if len(lines) != len(values) {
		stop("this check sets %d variables, and %s only %d", len(values), pagePath, len(lines))
	}
	stopIf(os.WriteFile(filepath.Join(workDir, "shell"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}
