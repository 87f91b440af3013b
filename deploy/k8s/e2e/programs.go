package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Images, by the names that the overlay has for them. The second image of the service is the same program with another
// version.
const (
	firstImage  = "registry.example.com/licet:0.1.0"
	secondImage = "registry.example.com/licet:0.1.1"
	etcdImage   = "gcr.io/etcd-development/etcd:v3.7.3"
)

// programs are the programs of a run.
type programs struct {
	folder      string // of Kubernetes' programs
	bin         string // of licet, for its command line
	debian      string // what Debian's packages were unpacked into
	prometheus  string
	k6          string
	load        string // loadtest/run
	definitions string // of the Prometheus operator's kinds
	images      []string
}

func (p *programs) k8s(name string) string { return filepath.Join(p.folder, name) }

// findPrograms builds the programs that are not in the cache yet.
func findPrograms(ctx context.Context, root string, r *report) (*programs, error) {
	if room, err := free(); err != nil || room < 4<<30 {
		return nil, errors.Join(err,
			fmt.Errorf("%s must have 4 GiB free for images and logs, and has %d MiB", filepath.Dir(workDir), room>>20))
	}
	home, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache := filepath.Join(home, "licet")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	p := &programs{bin: filepath.Join(root, "bin")}
	if p.debian, err = unpackPackages(ctx, cache, r); err != nil {
		return nil, err
	}
	r.say("    Kubernetes, etcd and what a cluster has beside them: 15 minutes the first time …")
	if p.folder, err = lastLine(in(ctx, root, "deploy/k8s/tools/build", "kube-apiserver", "kube-controller-manager",
		"kube-scheduler", "kubelet", "kube-proxy",
		"kubectl", "etcd", "etcdctl", "etcdutl", "coredns", "metrics-server", "prometheus-adapter")); err != nil {
		return nil, err
	}
	r.say("    Prometheus, k6 and licet …")
	folder, err := lastLine(in(ctx, root, "deploy/observability/install-prometheus"))
	if err != nil {
		return nil, err
	}
	p.prometheus = filepath.Join(folder, "prometheus")
	if p.k6, err = lastLine(in(ctx, root, "go", "tool", "-modfile=loadtest/k6/go.mod", "-n", "k6")); err != nil {
		return nil, err
	}
	p.load = filepath.Join(p.bin, "loadtest-run")
	for _, build := range [][]string{
		{"go", "build", "-trimpath", "-o", p.load, "./loadtest/run"},
		{"go", "build", "-trimpath", "-o", filepath.Join(p.bin, "licet"), "./cmd/licet"},
	} {
		if _, err := output(in(ctx, root, build[0], build[1:]...)); err != nil {
			return nil, err
		}
	}
	if p.definitions, err = lastLine(in(ctx, root, "deploy/k8s/tools/operator-kinds")); err != nil {
		return nil, err
	}
	return p, p.buildImages(ctx, root)
}

// in returns a command that runs in a folder, with this environment.
func in(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	if strings.HasPrefix(program, "deploy/") {
		program = filepath.Join(dir, program)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	return cmd
}

func lastLine(cmd *exec.Cmd) (string, error) {
	out, err := output(cmd)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1], err
}

// buildImages makes the images: the service's as "make image" makes it, and with the same
// program the images that would be pulled.
func (p *programs) buildImages(ctx context.Context, root string) error {
	dir := filepath.Join(root, "bin", "k8s-e2e-images")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, image := range []string{firstImage, secondImage} {
		version := image[strings.LastIndex(image, ":")+1:]
		if _, err := output(in(ctx, root, "make", "image", "IMAGE="+image, "VERSION="+version)); err != nil {
			return err
		}
		to := filepath.Join(dir, "licet-"+version+".tar")
		if err := errors.Join(os.MkdirAll(dir, 0o755),
			os.Rename(filepath.Join(root, "bin/image/licet.tar"), to)); err != nil {
			return err
		}
		p.images = append(p.images, to)
	}
	pause := filepath.Join(dir, "pause")
	build := in(ctx, filepath.Join(root, "deploy/k8s/e2e"), "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
		filepath.Join(pause, "licet"), "./pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := output(build); err != nil {
		return err
	}
	store := filepath.Join(dir, "etcd")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	for _, program := range []string{"etcd", "etcdctl", "etcdutl"} {
		if err := os.Symlink(p.k8s(program), filepath.Join(store, program)); err != nil {
			return err
		}
	}
	// The image program sets the entry point of the service, licet. So the sandboxes' program
	// is named licet. Members of etcd are started by a command of their own.
	for from, name := range map[string]string{pause: pauseImage, store: etcdImage} {
		if _, err := output(in(ctx, filepath.Join(root, "deploy/image"), "go", "run", ".", "tar", "--programs", from,
			"--out", from+"-image", "--image", name)); err != nil {
			return err
		}
		p.images = append(p.images, filepath.Join(from+"-image", "licet.tar"))
	}
	return nil
}
