package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// backup runs the CronJob's job, and then makes an order that the restored store must not
// have.
func (r *walk) backup(ctx context.Context) {
	out := r.block(ctx, "backup")
	name := r.variable("BACKUP")
	if name == "" {
		stop("no backup was named: %s", out)
	}
	r.report.saw("%s", name)
	r.shell(ctx, "after-backup", `
		AFTER=$(licet orders create --product-id after --amount 100 --currency USD --output json | jq -r .order_no)
		export AFTER
		licet orders get "$AFTER"`)
}

// restore deletes all members with their volumes, and restores the backup with the page's
// commands.
func (r *walk) restore(ctx context.Context) {
	r.blocks(ctx, "stop-nodes")
	// The disaster. The page begins where everything is lost.
	must(r.in(ctx, "delete", "statefulset/etcd", "--wait"))
	must(r.in(ctx, "wait", "--for=delete", "pod", "--selector", "app.kubernetes.io/component=store",
		"--timeout=2m"))
	must(r.in(ctx, "delete", "pvc", "data-etcd-0", "data-etcd-1", "data-etcd-2"))
	r.blocks(ctx, "restore", "start-nodes")
	r.verify(ctx)
	r.came(ctx)
}

// came checks that the backup's records are back, and that later records are gone.
func (r *walk) came(ctx context.Context) {
	out := r.shell(ctx, "after-restore", `
		licet licenses get "$LICENSE" --output json
		licet orders get "$ORDER" --output json
		licet orders get "$AFTER" --output json 2>&1 || true`)
	var problems []error
	for what, must := range map[string]string{
		"the license has its device": `"current_devices":1`,
		"the order is paid":          `"status":"paid"`,
		"what came after is gone":    "order_not_found",
	} {
		if !strings.Contains(out, must) {
			problems = append(problems, fmt.Errorf("%s: not in the answers: %s", what, out))
		}
	}
	stopIf(errors.Join(problems...))
	// The restored service takes load.
	r.under(ctx, load{"mixed", 10, 15 * time.Second}, func(context.Context) {})
}
