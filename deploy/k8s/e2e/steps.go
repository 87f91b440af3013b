package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// step is a part of the walk through the page.
type step struct {
	name string
	do   func(context.Context)
}

// walk is one walk through the page.
type walk struct {
	*cluster
	page   *page
	report *report
	cfg    config
}

// steps runs all steps in turn, and stops at the first that fails: later steps need the
// earlier ones.
func (r *walk) steps(ctx context.Context) error {
	const needed = 4 // steps that all later steps need
	list := []step{
		{"cluster: control plane, three nodes, DNS, volumes, metrics", r.up},
		{"install: the production overlay, from an empty cluster", r.install},
		{"spread: members, and nodes, are each on another machine", r.spread},
		{"main job: order, pay, activate through the Service", r.mainJob},
		{"verify: licet store verify in a pod", r.verify},
		{"update: a rolling update under k6 loses no request", r.update},
		{"rollback: back to the version before", r.rollback},
		{"kill: a container, and a member of etcd, under k6", r.kill},
		{"drain: the budgets hold", r.drain},
		{"maintenance: defragmentation, certificates, new authorities", r.maintain},
		{"backup: the CronJob's job", r.backup},
		{"disaster: all of etcd is lost, and restored", r.restore},
		{"autoscaler: out under load, and back", r.scale},
		{"remove: as the page says", r.remove},
	}
	defer func() { _ = os.RemoveAll(r.overlay()) }()
	only := strings.FieldsFunc(r.cfg.only, func(c rune) bool { return c == ',' })
	for _, name := range only {
		if !slices.ContainsFunc(list[needed:], func(s step) bool { return strings.HasPrefix(s.name, name) }) {
			return fmt.Errorf("--only %s: no step after the main job is called so", name)
		}
	}
	leftOut := false
	for i, step := range list {
		if i >= needed && len(only) > 0 &&
			!slices.ContainsFunc(only, func(name string) bool { return strings.HasPrefix(step.name, name) }) {
			leftOut = true
			continue
		}
		if err := r.report.step(ctx, step.name, func(ctx context.Context) error {
			return errors.Join(attempt(func() { step.do(ctx) }), r.ended())
		}); err != nil {
			return err
		}
	}
	if leftOut {
		r.report.note("steps were left out")
		return nil
	}
	r.report.note("not tried here: NetworkPolicies (the pods' bridge ignores them), a load balancer, dynamic volumes " +
		"and pulls of images")
	if left := r.page.unrun(); len(left) > 0 {
		return fmt.Errorf("commands of %s that no step has run: %s", pagePath, strings.Join(left, ", "))
	}
	return nil
}

// overlay returns the folder that the page has readers make.
func (r *walk) overlay() string { return filepath.Join(r.cfg.root, overlayPath) }

const overlayPath = "deploy/k8s/overlays/e2e"

// address is the Service's, as the component "small" sets it.
const address = "http://10.96.0.80"

// install goes from an empty cluster to nodes that are ready.
func (r *walk) install(ctx context.Context) {
	r.settings(map[string]string{
		"OVERLAY": overlayPath, "IMAGE": firstImage, "NEXT_IMAGE": secondImage, "LICET_URL": address,
		"MACHINE": nodeNames()[1],
	})
	definitions, err := filepath.Glob(filepath.Join(r.tools.definitions, "*_*.yaml"))
	if err != nil || len(definitions) == 0 {
		stop("the operator's definitions in %s: %w", r.tools.definitions, errors.Join(err, os.ErrNotExist))
	}
	for _, file := range definitions {
		if strings.Contains(file, "_servicemonitors") || strings.Contains(file, "_prometheusrules") {
			must(r.kubectl(ctx, "apply", "--server-side", "--filename", file))
		}
	}
	const keys = "master.keys"
	if _, err := os.Stat(filepath.Join(r.cfg.root, keys)); err == nil {
		stop("%s is there already, and the page's commands would change it: move it away", keys)
	}
	// A killed run may have left the folder. Its name belongs to this check.
	stopIf(os.RemoveAll(r.overlay()))
	r.blocks(ctx, "image", "overlay")
	// The settings that three nodes on one machine need, and a real cluster does not.
	file := must(os.OpenFile(filepath.Join(r.overlay(), "kustomization.yaml"), os.O_APPEND|os.O_WRONLY, 0))
	_, err = file.WriteString("components: [../../e2e/small]\n")
	stopIf(errors.Join(err, file.Close()))
	r.blocks(ctx, "secrets")
	stopIf(os.Remove(filepath.Join(r.cfg.root, keys)))
	r.blocks(ctx, "apply", "ready", "users")
}

// spread checks that pods run where affinity and topology spread put them.
func (r *walk) spread(ctx context.Context) {
	for label, what := range map[string]string{"etcd": "members", "licet": "nodes"} {
		component := map[string]string{"etcd": "store", "licet": "node"}[label]
		out := must(r.in(ctx, "get", "pods", "--selector",
			"app.kubernetes.io/name="+label+",app.kubernetes.io/component="+component,
			"--output", "jsonpath={range .items[*]}{.spec.nodeName} {end}"))
		on := map[string]bool{}
		for _, name := range strings.Fields(out) {
			on[name] = true
		}
		if len(on) != 3 {
			stop("the %s are on %q, and not on three machines", what, out)
		}
	}
}

// mainJob makes the first key, and then orders, pays and activates.
func (r *walk) mainJob(ctx context.Context) {
	r.blocks(ctx, "first-key", "port-forward")
	out := r.block(ctx, "activate")
	if !regexp.MustCompile(`\bactivated\b`).MatchString(out) { // and not not_activated
		stop("no license was activated: %s", out)
	}
}

// verify checks the whole store.
func (r *walk) verify(ctx context.Context) {
	r.blocks(ctx, "verify")
}

// maintain runs the weekly CronJobs' work, and replaces the authorities, which happens
// every ten years.
func (r *walk) maintain(ctx context.Context) {
	r.blocks(ctx, "defragment")
	out := r.block(ctx, "certificates")
	if strings.Count(out, ": good") != 4 {
		stop("certificates were made anew that are good: %s", out)
	}
	r.blocks(ctx, "authority")
	r.verify(ctx)
}

// remove removes everything, data and keys included.
func (r *walk) remove(ctx context.Context) {
	r.blocks(ctx, "remove")
	if out := must(r.in(ctx, "get", "pods", "--output", "name")); strings.TrimSpace(out) != "" {
		stop("pods are left: %s", out)
	}
}

// number reads one number of one object, 0 if it is absent.
func (r *walk) number(ctx context.Context, thing, path string) (int, error) {
	out, err := r.in(ctx, "get", thing, "--output", "jsonpath={"+path+"}")
	if err != nil || out == "" {
		return 0, err
	}
	return strconv.Atoi(out)
}
