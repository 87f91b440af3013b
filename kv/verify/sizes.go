package verify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// Sizes counts how much each owner stores, as [licensing.Usage] counts it, at one revision of the store. It keeps a
// few bytes for each owner, and rests for so long after each page that it reads. If history is compacted under it,
// Sizes fails with [ErrCompacted].
func Sizes(
	ctx context.Context, s Store, revision int64, rest time.Duration,
) (map[licensing.Owner]licensing.Size, error) {
	c := &sizes{
		reading: (&reading{kv: s.Client().KV, revision: revision}).apart(),
		of:      make(map[licensing.Owner]licensing.Size),
	}
	c.rest = rest
	if err := c.readSlots(ctx); err != nil {
		return nil, explain(ctx, err)
	}
	return c.of, explain(ctx, c.count(ctx))
}

// count counts all families.
func (c *sizes) count(ctx context.Context) error {
	counts := []func(context.Context) error{
		c.owned("a/", 0), c.owned("b/", 0), c.owned("c/", 0), c.owned("f/", 0), c.owned("g/", 0),
		c.owned("i/", 0), c.owned("o/", 0), c.owned("q/", 0), c.owned("t/", 0), c.owned("w/", 0), c.owned("y/", 0),
		c.owned(keyspace.ReceiptKeysFamily, 0), c.owned(keyspace.RevocationsFamily, 0),
		c.owned(keyspace.PaymentsFamily, 0), c.owned(keyspace.PaymentListings, 0),
		c.owned(keyspace.SalesFamily, 0), c.owned(keyspace.SandboxFamily, 0),
		c.countSkips,
		c.owned("z/", keyspace.TimeSize),
		c.valued("k/", ownerOfAPIKey), c.valued("n/", ownerOfAlias), c.valued("p/", layout.DecodeOwner),
		c.countLicenses, c.countTrials, c.countDeliveries,
	}
	for x := range keyspace.DueIndexes() {
		if x.Record != licensing.KindLicense {
			counts = append(counts, c.owned(x.Family, keyspace.TimeSize))
		}
	}
	for _, count := range counts {
		if err := count(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sizes is a count under way. Keys and values that can't be read count for no owner: the verification reports them.
type sizes struct {
	*reading
	of map[licensing.Owner]licensing.Size
}

func (c *sizes) add(owner licensing.Owner, size licensing.Size) { c.of[owner] = c.of[owner].Plus(size) }

// size returns the size of an entry.
func (e entry) size() licensing.Size { return layout.SizeOf(len(e.key), len(e.value)) }

// eachEntry calls do for the entries of a family.
func (c *sizes) eachEntry(ctx context.Context, prefix string, do func(entry)) error {
	keys := c.stream(prefix)
	defer keys.close()
	for {
		e, more, err := keys.next(ctx)
		if err != nil || !more {
			return err
		}
		do(e)
	}
}

// owned counts a family whose keys name the owner, after so many bytes.
func (c *sizes) owned(prefix string, at int) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.eachEntry(ctx, prefix, func(e entry) {
			if owner, _, ok := keyspace.CutOwner(e.rest[min(at, len(e.rest)):]); ok {
				c.add(owner, e.size())
			}
		})
	}
}

// countSkips counts the keys on the upper levels of listings.
func (c *sizes) countSkips(ctx context.Context) error {
	return c.eachEntry(ctx, keyspace.SkipFamily, func(e entry) {
		if owner, _, ok := keyspace.CutOwner(keyspace.CutSkip(e.rest)); ok {
			c.add(owner, e.size())
		}
	})
}

// countTrials counts trials.
func (c *sizes) countTrials(ctx context.Context) error {
	return c.eachEntry(ctx, keyspace.TrialsFamily, func(e entry) {
		if ref, ok := keyspace.ReadTrialKey(e.rest); ok {
			size := e.size()
			size.Trials = 1
			c.add(ref.Owner, size)
		}
	})
}

// valued counts a family whose values name the owner.
func (c *sizes) valued(prefix string, ownerOf func([]byte) (licensing.Owner, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.eachEntry(ctx, prefix, func(e entry) {
			if owner, err := ownerOf(e.value); err == nil {
				c.add(owner, e.size())
			}
		})
	}
}

func ownerOfAPIKey(value []byte) (licensing.Owner, error) {
	stored, err := layout.DecodeAPIKey([32]byte{}, value)
	if err != nil {
		return licensing.Owner{}, fmt.Errorf("an API key: %w", err)
	}
	return stored.Key.Owner, nil
}

func ownerOfAlias(value []byte) (licensing.Owner, error) {
	alias, err := layout.DecodeAlias(value)
	return alias.Owner, err
}

// countLicenses counts licenses together with their devices, metadata and entries of due work. Devices and metadata
// have the order of their licenses.
func (c *sizes) countLicenses(ctx context.Context) error {
	devices, metadata := c.stream("d/"), c.stream("m/")
	defer devices.close()
	defer metadata.close()
	licenses := c.stream("l/")
	defer licenses.close()
	for {
		e, more, err := licenses.next(ctx)
		if err != nil || !more {
			return err
		}
		id, ok := keyspace.LicenseIDOf(e.slot, e.rest)
		if !ok {
			continue
		}
		size := e.size()
		for _, part := range []*stream{devices, metadata} {
			of, err := c.sizeOfPart(ctx, part, e)
			if err != nil {
				return err
			}
			size = size.Plus(of)
		}
		stored, err := layout.DecodeLicense(id, e.value)
		if err != nil {
			continue
		}
		l := &stored.License
		if due := keyspace.DueOf(l.Due()); due != 0 {
			size = size.Plus(layout.SizeOf(len(due.Key(keyspace.LicenseKey(id))), 0))
		}
		c.add(l.Owner, size)
	}
}

// sizeOfPart returns the size of the keys of a license in a stream, and skips the keys before it.
func (c *sizes) sizeOfPart(ctx context.Context, part *stream, license entry) (size licensing.Size, err error) {
	for {
		e, more, err := part.peek(ctx)
		if err != nil || !more {
			return size, err
		}
		switch {
		case e.slot == license.slot && strings.HasPrefix(e.rest, license.rest):
			size = size.Plus(e.size())
		case !e.sortsBefore(license):
			return size, nil
		}
		part.skip()
	}
}

// countDeliveries counts the keys of the deliveries to each endpoint. The endpoint's progress, or a replay, names the
// owner.
func (c *sizes) countDeliveries(ctx context.Context) error {
	var endpoint string
	var owner licensing.Owner
	var size licensing.Size
	end := func() {
		if owner != (licensing.Owner{}) {
			c.add(owner, size)
		}
		owner, size = licensing.Owner{}, licensing.Size{}
	}
	err := c.eachEntry(ctx, "v/", func(e entry) {
		of, kind, _, ok := keyspace.ReadDeliveryKey(e.rest)
		if !ok {
			return
		}
		if of != endpoint {
			end()
			endpoint = of
		}
		size = size.Plus(e.size())
		switch kind {
		case keyspace.KeyOfProgress:
			if stored, err := layout.DecodeProgress(e.value); err == nil {
				owner = stored.Owner
			}
		case keyspace.KeyOfReplay:
			if of, _, err := layout.DecodeReplay("", e.value); err == nil {
				owner = of
			}
		}
	})
	end()
	return err
}
