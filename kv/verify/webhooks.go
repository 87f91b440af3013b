package verify

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// webhookChecks checks webhook endpoints, listening owners, and deliveries.
type webhookChecks struct {
	*reading
	events *eventChecks
	keys   *keyChecks
}

// checkWebhooks checks an owner's endpoints of webhooks, and whether the owner listens
// to activations exactly if one of them does.
func (v *webhookChecks) checkWebhooks(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || rest != "" {
		v.report("webhooks", "w/"+Opaque(e.rest), "key", "the key does not name an owner")
		return
	}
	name := "w/" + keyspace.OwnerPath(owner)
	bad := func(rule, format string, args ...any) { v.report("webhooks", name, rule, format, args...) }
	stored, err := layout.DecodeWebhooks(owner, e.value)
	if err != nil {
		v.events.links.unread = true
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.WebhooksWriter, bad)
	w := &stored.Webhooks
	if n := w.Sequence; n > 0 {
		v.events.wantEvents(runAt{owner, stored.LastEvent, keyspace.WebhooksInEvents(owner), n}, bad, nil)
	}
	v.want(keyspace.WebhooksMark, func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("mark_missing", "cell/webhooks is missing, so no node looks for this endpoint")
		}
	})
	v.checkListens(owner, w.Listening(), bad)
	if len(w.Endpoints) > licensing.MaxEndpoints {
		bad("limit", "it has %d endpoints, and may have %d", len(w.Endpoints), licensing.MaxEndpoints)
	}
	for i := range w.Endpoints {
		v.checkEndpoint(w, &w.Endpoints[i], bad)
	}
}

func (v *webhookChecks) checkEndpoint(
	w *licensing.Webhooks, e *licensing.Endpoint, bad func(rule, format string, args ...any),
) {
	switch {
	case !licensing.ValidEndpointID(e.ID):
		bad("id", "the id of an endpoint is malformed")
		return
	case w.Find(e.ID) != e:
		bad("twice", "the endpoint %s is there twice", e.ID)
		return
	case e.URL == "" || e.SecretVersion < 1 || e.Since == "" || e.CreatedAt.IsZero() || e.ResetAt.IsZero() ||
		e.Enabled() != (e.DisabledBecause == ""):
		bad("endpoint", "the endpoint %s lacks a required field, or its reason for being disabled is wrong",
			e.ID)
	}
	if !licensing.SlotOf(w.Owner).In(e.ID) {
		bad("slot", "the id of the endpoint %s does not contain the slot of its owner", e.ID)
	}
	missing := func(master string) {
		bad("master_missing", "the store has no fingerprint of the master key %q of the endpoint %s", master, e.ID)
	}
	v.keys.wantMaster(e.MasterID, false, missing)
	if previous := e.Previous; previous != (licensing.PreviousSecret{}) && previous.MasterID != e.MasterID {
		v.keys.wantMaster(previous.MasterID, true, missing)
	}
	v.want(keyspace.DeletedWebhookKey(e.ID), func(kv *mvccpb.KeyValue) {
		if kv != nil {
			bad("deleted", "the endpoint %s exists, and an entry says that it was deleted", e.ID)
		}
	})
}

// checkListens checks that an owner listens exactly if an endpoint of the owner wants
// activations, unless a request to change that waits for the next move of keyspace.ListenKey.
func (v *webhookChecks) checkListens(owner licensing.Owner, wanted bool, bad func(rule, format string, args ...any)) {
	var waits bool
	v.want(keyspace.ListenRequestKey(owner), func(kv *mvccpb.KeyValue) {
		waits = kv != nil && kv.ModRevision > v.moved
	})
	v.want(keyspace.ListenerKey(owner), func(kv *mvccpb.KeyValue) {
		if listens := kv != nil; listens != wanted && !waits {
			bad("listening", "an endpoint wants activations: %v; the owner listens: %v", wanted, listens)
		}
	})
}

// checkListenFence checks keyspace.ListenKey.
func (v *webhookChecks) checkListenFence(e entry) {
	if e.rest != "" {
		v.report("listen_fence", "cell/listen"+Opaque(e.rest), "key",
			"unexpected key: the only one is cell/listen")
	} else if _, err := layout.DecodeListenFence(e.value); err != nil {
		v.report("listen_fence", "cell/listen", "value", "the value can't be read: %v", err)
	}
}

// checkListener checks the key of an owner that listens: the owner has endpoints.
func (v *webhookChecks) checkListener(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || rest != "" || len(e.value) > 0 {
		v.report("listener", "cell/f/"+Opaque(e.rest), "key",
			"the key does not name an owner, or has a value")
		return
	}
	v.wantEndpointsOf(owner, "listener", "cell/f/")
}

// checkListenRequest checks an owner's request to listen.
func (v *webhookChecks) checkListenRequest(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || rest != "" {
		v.report("listen_request", "cell/a/"+Opaque(e.rest), "key", "the key does not name an owner")
		return
	}
	if _, err := layout.DecodeListenRequest(e.value); err != nil {
		v.report("listen_request", "cell/a/"+keyspace.OwnerPath(owner), "value", "the value can't be read: %v", err)
	}
	v.wantEndpointsOf(owner, "listen_request", "cell/a/")
}

func (v *webhookChecks) wantEndpointsOf(owner licensing.Owner, family, prefix string) {
	v.want(keyspace.WebhooksKey(owner), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report(family, prefix+keyspace.OwnerPath(owner), "webhooks_missing", "the owner has no endpoints")
		}
	})
}

// checkWebhooksMark checks keyspace.WebhooksMark.
func (v *webhookChecks) checkWebhooksMark(e entry) {
	if e.rest != "" || len(e.value) > 0 {
		v.report("webhooks_mark", "cell/webhooks"+Opaque(e.rest), "key", "there is one, and it is empty")
	}
}

// checkDeletedWebhook checks the key of a deleted endpoint, whose remains a sweep will remove.
func (v *webhookChecks) checkDeletedWebhook(e entry) {
	if !licensing.ValidEndpointID(e.rest) || len(e.value) > 0 {
		v.report("deleted_webhook", "x/w/"+Opaque(e.rest), "key",
			"the key does not name an endpoint, or has a value")
	}
}
