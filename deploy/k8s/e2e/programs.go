package main

import (
	"context"
	"errors"
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
func findPrograms(ctx context.Context, root string, r *report) *programs {
	if room := must(free()); room < 4<<30 {
		stop("%s must have 4 GiB free for images and logs, and has %d MiB", filepath.Dir(workDir), room>>20)
	}
	cache := filepath.Join(must(os.UserCacheDir()), "licet")
	stopIf(os.MkdirAll(cache, 0o755))
	p := &programs{bin: filepath.Join(root, "bin")}
	p.debian = unpackPackages(ctx, cache, r)
	r.say("    Kubernetes, etcd and what a cluster has beside them: 15 minutes the first time …")
	p.folder = lastLine(in(ctx, root, "deploy/k8s/tools/build", "kube-apiserver", "kube-controller-manager",
		"kube-scheduler", "kubelet", "kube-proxy",
		"kubectl", "etcd", "etcdctl", "etcdutl", "coredns", "metrics-server", "prometheus-adapter"))
	r.say("    Prometheus, k6 and licet …")
	folder := lastLine(in(ctx, root, "deploy/observability/install-prometheus"))
	p.prometheus = filepath.Join(folder, "prometheus")
	p.k6 = filepath.Join(p.bin, "k6")
	p.load = filepath.Join(p.bin, "loadtest-run")
	for _, build := range [][]string{
		{"go", "build", "-trimpath", "-o", p.load, "./loadtest/run"},
		{"go", "build", "-trimpath", "-o", filepath.Join(p.bin, "licet"), "./cmd/licet"},
		{"go", "run", "-exec", "cp", "-modfile=loadtest/k6/go.mod", "-trimpath", "go.k6.io/k6/v2", p.k6},
	} {
		must(output(in(ctx, root, build[0], build[1:]...)))
	}
	p.definitions = lastLine(in(ctx, root, "deploy/k8s/tools/operator-kinds"))
	p.buildImages(ctx, root)
	return p
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

func lastLine(cmd *exec.Cmd) string {
	lines := strings.Split(strings.TrimSpace(must(output(cmd))), "\n")
	return lines[len(lines)-1]
}

// buildImages makes the images: the service's as "make image" makes it, and with the same
// program the images that would be pulled.
func (p *programs) buildImages(ctx context.Context, root string) {
	dir := filepath.Join(root, "bin", "k8s-e2e-images")
	stopIf(os.RemoveAll(dir))
	for _, image := range []string{firstImage, secondImage} {
		version := image[strings.LastIndex(image, ":")+1:]
		must(output(in(ctx, root, "make", "image", "IMAGE="+image, "VERSION="+version)))
		to := filepath.Join(dir, "licet-"+version+".tar")
		stopIf(errors.Join(os.MkdirAll(dir, 0o755),
			os.Rename(filepath.Join(root, "bin/image/licet.tar"), to)))
		p.images = append(p.images, to)
	}
	pause := filepath.Join(dir, "pause")
	build := in(ctx, filepath.Join(root, "deploy/k8s/e2e"), "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
		filepath.Join(pause, "licet"), "./pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	must(output(build))
	store := filepath.Join(dir, "etcd")
	stopIf(os.MkdirAll(store, 0o755))
	for _, program := range []string{"etcd", "etcdctl", "etcdutl"} {
		stopIf(os.Symlink(p.k8s(program), filepath.Join(store, program)))
	}
	// The image program sets the entry point of the service, licet. So the sandboxes' program
	// is named licet. Members of etcd are started by a command of their own.
	for from, name := range map[string]string{pause: pauseImage, store: etcdImage} {
		must(output(in(ctx, filepath.Join(root, "deploy/image"), "go", "run", ".", "tar", "--programs", from,
			"--out", from+"-image", "--image", name)))
		p.images = append(p.images, filepath.Join(from+"-image", "licet.tar"))
	}
}
