package service

import (
	"context"
	"net/netip"
	"time"

	"github.com/maypok86/otter/v2"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

const (
	// rememberedAliases is how many external keys and reissued keys a node remembers. Each takes about 200 bytes of the
	// heap, as measured with 100,000 of them and ids of accounts as licet dev makes them: 20 MB in all.
	rememberedAliases = 100_000
	// rememberedMatchings is how many owners with external keys a node remembers. It remembers no owner without them:
	// another node may store the first one at any time, and the next activation must find it.
	rememberedMatchings = 10_000
	// aliasLife is how long a node caches an alias. Aliases never change, except by a restore of an older backup.
	aliasLife = 10 * time.Minute
)

// Aliases finds licenses by external keys and by reissued keys. An activation by such a key that the node remembers
// takes no more requests to the store than an activation by another license key.
type Aliases struct {
	*core
	matchings cache[licensing.Owner, remembered[licensing.KeyMatching]] // of owners with external keys
	aliases   cache[licensing.AliasName, remembered[licensing.Alias]]
}

// cache is an otter.Cache as an interface: a package that imports service then does not compile otter's generic code
// once more.
type cache[K comparable, V any] interface {
	GetIfPresent(K) (V, bool)
	Set(K, V) (V, bool)
}

// remembered is a value that the store has returned, and until when the node trusts it.
type remembered[T any] struct {
	value T
	until time.Time
}

func remember[K comparable, T any](e *Aliases, in cache[K, remembered[T]], key K, value T) {
	in.Set(key, remembered[T]{value, e.engine.Now().Add(aliasLife)})
}

func recall[K comparable, T any](e *Aliases, in cache[K, remembered[T]], key K) (value T, known bool) {
	r, known := in.GetIfPresent(key)
	return r.value, known && e.engine.Now().Before(r.until)
}

func newAliases(c *core) *Aliases {
	return &Aliases{
		core: c,
		matchings: otter.Must(&otter.Options[licensing.Owner, remembered[licensing.KeyMatching]]{
			MaximumSize: rememberedMatchings,
		}),
		aliases: otter.Must(&otter.Options[licensing.AliasName, remembered[licensing.Alias]]{
			MaximumSize: rememberedAliases,
		}),
	}
}

// ExternalLicense returns the license that an end user has named by an external key of an owner, which RecallExternal
// does not know. network is the end user's. ExternalLicense fails with ErrInvalidLicenseKey if the owner has no
// external keys, and with ErrLicenseNotFound if none of them is this one.
func (e *Aliases) ExternalLicense(
	ctx context.Context, owner licensing.Owner, external string, network netip.Addr,
) (licensing.LicenseKey, error) {
	return admittedFor(ctx, e.engine, e.engine.EndUserShare(network),
		func(*node.Place) (licensing.LicenseKey, error) { return e.find(ctx, owner, external) })
}

// RecallExternal returns the license with an external key of an owner, if the node remembers the license.
func (e *Aliases) RecallExternal(
	owner licensing.Owner, external string,
) (key licensing.LicenseKey, known bool) {
	matching, known := recall(e, e.matchings, owner)
	if !known {
		return key, false
	}
	id, known := e.recallAlias(owner, e.cfg.LicenseKeys.AliasOf(owner, matching.Of(external)))
	return id.External(), known
}

// find finds the license with an external key of an owner.
func (e *Aliases) find(
	ctx context.Context, owner licensing.Owner, external string,
) (key licensing.LicenseKey, err error) {
	matching, known := recall(e, e.matchings, owner)
	if !known {
		settings, err := e.readSettings(ctx, owner)
		switch {
		case err != nil:
			return key, err
		case !settings.KeysFixed:
			return key, licensing.ErrInvalidLicenseKey
		}
		matching = settings.Matching()
		remember(e, e.matchings, owner, matching)
	}
	text := matching.Of(external)
	if text == "" {
		return key, licensing.ErrLicenseNotFound
	}
	name := e.cfg.LicenseKeys.AliasOf(owner, text)
	id, err := e.lookUp(ctx, owner, name)
	if err != nil {
		return key, err
	}
	return id.External(), nil
}

// recallAlias returns the license of an owner that an alias leads to, if the node remembers the alias. A zero owner
// stands for every owner.
func (e *Aliases) recallAlias(
	owner licensing.Owner, name licensing.AliasName,
) (id licensing.LicenseID, known bool) {
	alias, known := recall(e, e.aliases, name)
	return alias.License, known && alias.Owner.Matches(owner)
}

// lookUp returns the license of an owner that an alias leads to, or ErrLicenseNotFound. An alias of another owner costs
// as many requests as an unknown one, even if the node remembers the alias.
func (e *Aliases) lookUp(
	ctx context.Context, owner licensing.Owner, name licensing.AliasName,
) (id licensing.LicenseID, err error) {
	if id, known := e.recallAlias(owner, name); known {
		return id, nil
	}
	loaded, err := e.cfg.Records.Load(ctx, store.Want{Ref: licensing.AliasRef(name)})
	if err != nil {
		return id, err
	}
	alias := loaded[0].Record.Alias
	if alias == nil || !alias.Owner.Matches(owner) {
		return id, licensing.ErrLicenseNotFound
	}
	remember(e, e.aliases, name, *alias)
	return alias.License, nil
}

// ResolveKey returns a key as a key of its license, if it is a reissued key; any other key as it is. The caller is an
// owner, or, if owner is zero, an end user from a network. ResolveKey fails with ErrLicenseNotFound if there is no such
// key, and if its license is not the owner's.
func (e *Aliases) ResolveKey(
	ctx context.Context, key licensing.LicenseKey, owner licensing.Owner, network netip.Addr,
) (licensing.LicenseKey, error) {
	if !key.IsAlias() {
		return key, nil
	}
	if id, known := e.recallAlias(owner, key.Alias()); known {
		return key.Of(id), nil
	}
	return admittedFor(ctx, e.engine, e.callerShare(owner, network), func(*node.Place) (licensing.LicenseKey, error) {
		id, err := e.lookUp(ctx, owner, key.Alias())
		return key.Of(id), err
	})
}

// RecallKey returns a reissued key as a key of its license, if the node remembers the license; any other key as it is.
func (e *Aliases) RecallKey(key licensing.LicenseKey) licensing.LicenseKey {
	if key.IsAlias() {
		if id, known := e.recallAlias(licensing.Owner{}, key.Alias()); known {
			return key.Of(id)
		}
	}
	return key
}

// newAlias returns the alias of a new license, and the license's external key as the store keeps it. The owner's
// matching is fixed before. newAlias fails with ErrExternalKeyInUse if the alias exists.
func (e *Aliases) newAlias(
	ctx context.Context, owner licensing.Owner, id licensing.LicenseID, external string,
) (alias licensing.AliasName, sealed string, err error) {
	matching, known := recall(e, e.matchings, owner)
	if !known {
		fixed, err := e.engine.Do(ctx, licensing.SettingsRef(owner), licensing.FixKeyMatching{Owner: owner})
		if err != nil {
			return alias, "", err
		}
		settings := fixed.Settings()
		matching = settings.Matching()
		remember(e, e.matchings, owner, matching)
	}
	text := matching.Of(external)
	if text == "" {
		return alias, "", licensing.ErrExternalKeyEmpty
	}
	alias = e.cfg.LicenseKeys.AliasOf(owner, text)
	loaded, err := e.cfg.Records.Load(ctx, store.Want{Ref: licensing.AliasRef(alias)})
	switch {
	case err != nil:
		return alias, "", err
	case loaded[0].Record.Alias != nil:
		return alias, "", licensing.ErrExternalKeyInUse
	}
	return alias, e.cfg.LicenseKeys.SealExternalKey(id, external), nil
}

// Settings returns the settings of an owner. The read is linearizable.
func (e *Aliases) Settings(ctx context.Context, owner licensing.Owner) (licensing.Settings, error) {
	return admitted(ctx, e.core, owner, func(node.Place) (licensing.Settings, error) {
		return e.readSettings(ctx, owner)
	})
}

func (c *core) readSettings(ctx context.Context, owner licensing.Owner) (licensing.Settings, error) {
	loaded, err := c.cfg.Records.Load(ctx, store.Want{Ref: licensing.SettingsRef(owner)})
	if err != nil || loaded[0].Record.Settings == nil {
		return licensing.Settings{Owner: owner}, err
	}
	return *loaded[0].Record.Settings, nil
}

// ChangeSettings changes the settings of an owner, and returns them.
func (e *Aliases) ChangeSettings(
	ctx context.Context, cmd licensing.ChangeSettings,
) (licensing.Settings, error) {
	if err := e.budgets.learn(ctx, cmd.Owner); err != nil {
		return licensing.Settings{}, err
	}
	result, err := e.engine.Do(ctx, licensing.SettingsRef(cmd.Owner), cmd)
	return result.Settings(), err
}
