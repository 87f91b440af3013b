package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packages returns the packages of Debian that the nodes run, with the libraries that
// these need.
func packages() []string {
	return []string{
		"containerd", "runc", "containernetworking-plugins", "iptables",
		"libip4tc2", "libip6tc2", "libmnl0", "libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11", "libseccomp2",
		"libxtables12",
	}
}

// unpackPackages downloads Debian's packages, unpacks them into a folder of the cache, and
// returns the folder. It installs nothing: nothing outside that folder changes.
func unpackPackages(ctx context.Context, cache string, r *report) string {
	dir := filepath.Join(cache, "debian")
	if runsPackages(ctx, dir) == nil {
		return dir
	}
	for _, tool := range []string{"apt-get", "dpkg"} {
		if _, err := exec.LookPath(tool); err != nil {
			stop("there is no %s: this check needs Debian or Ubuntu, whose containerd it unpacks",
				tool)
		}
	}
	r.say("    downloading Debian's %s …", strings.Join(packages()[:4], ", "))
	work := must(os.MkdirTemp(cache, "debian-"))
	defer os.RemoveAll(work)
	// apt's own user is to read it too.
	stopIf(os.Chmod(work, 0o755))
	for try := range 3 {
		download := exec.CommandContext(ctx, "apt-get",
			append([]string{"download", "-q", "-o", "APT::Sandbox::User=root"}, packages()...)...)
		download.Dir = work
		_, err := output(download)
		if err == nil {
			break
		}
		if try == 2 {
			stop("the packages could not be downloaded from Debian (where apt has no lists of "+
				"packages: apt-get update): %w", err)
		}
		time.Sleep(2 * time.Second)
	}
	files := must(filepath.Glob(filepath.Join(work, "*.deb")))
	root := filepath.Join(work, "root")
	for _, file := range files {
		must(output(exec.CommandContext(ctx, "dpkg", "-x", file, root)))
	}
	// The names that dpkg's alternatives would make.
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save",
		"ip6tables-restore"} {
		if err := os.Symlink("xtables-nft-multi", filepath.Join(root, "usr/sbin", name)); err != nil &&
			!errors.Is(err, os.ErrExist) {
			stopIf(err)
		}
	}
	if err := runsPackages(ctx, root); err != nil {
		stop("the programs in Debian's packages do not run here: %w", err)
	}
	stopIf(errors.Join(os.RemoveAll(dir), os.Rename(root, dir)))
	return dir
}

func runsPackages(ctx context.Context, root string) error {
	for _, program := range []string{"usr/bin/containerd", "usr/sbin/runc", "usr/sbin/iptables"} {
		cmd := exec.CommandContext(ctx, filepath.Join(root, program), "--version")
		cmd.Env = packageEnviron(root)
		if _, err := output(cmd); err != nil {
			return err
		}
	}
	_, err := os.Stat(filepath.Join(root, "usr/lib/cni/bridge"))
	return err
}

// packageEnviron returns the environment in which unpacked programs find their libraries
// and each other.
func packageEnviron(root string) []string {
	libraries, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	var plugins []string
	for _, dir := range libraries {
		plugins = append(plugins, filepath.Join(dir, "xtables"))
	}
	path := []string{filepath.Join(root, "usr/sbin"), filepath.Join(root, "usr/bin"), "/usr/local/sbin",
		"/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
	return slices.Concat([]string{
		"HOME=/root", "PATH=" + strings.Join(path, ":"),
		"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"),
		"XTABLES_LIBDIR=" + strings.Join(plugins, ":"),
	})
}
