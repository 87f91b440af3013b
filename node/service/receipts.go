package service

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"licet/internal/fair"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node"
	"licet/node/store"
	"licet/receipt"
)

const (
	// rememberedSigners bounds the owners whose receipt keys a node remembers. Each takes at most about 16 KiB.
	rememberedSigners = 4096
	// signerLife is how long a node trusts receipt keys that it has read. A new receipt key signs ten times as long
	// after its rotation, so that every node has read it by then.
	signerLife = time.Minute
	// askSignerFor bounds how long a node reads or makes the receipt keys of an owner for activations.
	askSignerFor = 3 * time.Second
)

// Receipts offers the keys that sign receipts.
type Receipts struct {
	*core
	signers cache[licensing.Owner, remembered[*ReceiptSigner]]
	asking  singleflight.Group // the readings of SignerAfter, by owner
	revoked cache[licensing.Owner, *RevocationList]
	// readings has the readings of lists of revocations that are under way, by owner.
	readings sync.Map
	signing  *fair.Places[licensing.Owner] // lists and increments
}

func newReceipts(c *core) *Receipts {
	signing := fair.New[licensing.Owner](fair.Config{Places: listsSigned, Each: 1, Waiting: math.MaxInt})
	return &Receipts{core: c, revoked: newRevocationLists(), signing: signing,
		signers: otter.Must(&otter.Options[licensing.Owner, remembered[*ReceiptSigner]]{
			MaximumSize: rememberedSigners,
		})}
}

// ReceiptSigner contains the keys that sign the receipts of an owner. They never change.
type ReceiptSigner struct {
	Keys    *licensing.ReceiptKeys
	Root    *receipt.Signer
	Sets    SignedDocuments            // sets of keys, by when they are issued, in Unix seconds
	signers map[uint64]*receipt.Signer // with Keys, by number
}

// Of returns the signer with one of the keys.
func (s *ReceiptSigner) Of(k licensing.ReceiptKey) *receipt.Signer { return s.signers[k.Number] }

// Signing returns the signer with the key that signs now.
func (s *ReceiptSigner) Signing(now time.Time) *receipt.Signer { return s.Of(s.Keys.Signing(now)) }

// RecallSigner returns the receipt keys of an owner, if the node has read them within the last minute. known reports
// whether the owner has receipt keys, as far as the node remembers.
func (r *Receipts) RecallSigner(owner licensing.Owner) (signer *ReceiptSigner, known bool) {
	have, known := r.signers.GetIfPresent(owner)
	if known && r.engine.Now().Before(have.until) {
		return have.value, true
	}
	return nil, known
}

// FindSigner reads the receipt keys of an owner for a caller without an API key, and makes none. It fails with
// ErrNoReceiptKeys.
func (r *Receipts) FindSigner(
	ctx context.Context, owner licensing.Owner, network netip.Addr,
) (*ReceiptSigner, error) {
	return admittedFor(ctx, r.engine, r.engine.EndUserShare(network), func(*node.Place) (*ReceiptSigner, error) {
		keys, err := r.readKeys(ctx, owner)
		if err != nil {
			return nil, err
		}
		return r.open(keys)
	})
}

// Signer returns the receipt keys of an owner. The first call of an owner makes them.
func (r *Receipts) Signer(ctx context.Context, owner licensing.Owner) (*ReceiptSigner, error) {
	if signer, _ := r.RecallSigner(owner); signer != nil {
		return signer, nil
	}
	return admitted(ctx, r.core, owner, func(place node.Place) (*ReceiptSigner, error) {
		return r.readOrMake(ctx, place, owner)
	})
}

// SignerAfter is Signer for a request of which the node has just served a command of the owner: see afterServed. All
// such requests of an owner at a time share one reading: the keys of an owner are a record with few places.
func (r *Receipts) SignerAfter(ctx context.Context, owner licensing.Owner) (*ReceiptSigner, error) {
	if signer, _ := r.RecallSigner(owner); signer != nil {
		return signer, nil
	}
	signer, err, _ := r.asking.Do(owner.AccountID+" "+string(owner.Mode), func() (any, error) {
		// The end of the first request must not fail the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askSignerFor)
		defer cancel()
		return afterServed(r.core, owner, func(place node.Place) (*ReceiptSigner, error) {
			return r.readOrMake(ctx, place, owner)
		})
	})
	if err != nil {
		return nil, err
	}
	return signer.(*ReceiptSigner), nil
}

// RotateReceiptKeys adds a receipt key, and returns the receipt keys of the owner.
func (r *Receipts) RotateReceiptKeys(
	ctx context.Context, owner licensing.Owner, by licensing.Actor,
) (*ReceiptSigner, error) {
	if _, err := r.Signer(ctx, owner); err != nil {
		return nil, err
	}
	result, err := r.engine.Do(ctx, licensing.ReceiptKeysRef(owner), licensing.RotateReceiptKeys{})
	if err != nil {
		return nil, err
	}
	r.cfg.Log.Info().Str("account_id", owner.AccountID).Str("mode", string(owner.Mode)).Str("by", string(by)).
		Msg("the receipt keys were rotated")
	return r.open(result.ReceiptKeys)
}

// SealRoot seals the root secret of an owner under the current master key, if another one seals it.
func (r *Receipts) SealRoot(ctx context.Context, owner licensing.Owner) error {
	if err := r.engine.StartWork(); err != nil {
		return err
	}
	defer r.engine.EndWork()
	_, err := admitted(ctx, r.core, owner, func(place node.Place) (licensing.Result, error) {
		keys, err := r.readKeys(ctx, owner)
		if err != nil || keys.Root.MasterID == r.cfg.Ring.Current().ID {
			return licensing.Result{}, err
		}
		if err := r.keymaker().useCurrent(ctx); err != nil {
			return licensing.Result{}, err
		}
		secret, err := r.cfg.Ring.OpenRoot(owner, keys.Root)
		if err != nil {
			return licensing.Result{}, err
		}
		root, err := r.seal(owner, secret)
		if err != nil {
			return licensing.Result{}, err
		}
		return place.Do(ctx, licensing.ReceiptKeysRef(owner), licensing.SealReceiptKeys{From: keys.Root, To: root})
	})
	return err
}

// SealRoots seals the root secrets of owners under the current master key. It goes on after an owner whose root secret
// it can't seal, and logs the last such error.
func (r *Receipts) SealRoots(ctx context.Context, ownersOf func(context.Context) ([]licensing.Owner, error)) {
	owners, err := ownersOf(ctx)
	for _, owner := range owners {
		if ctx.Err() != nil {
			return
		}
		if failed := r.SealRoot(ctx, owner); failed != nil {
			err = failed
		}
	}
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn().Err(err).Msg("some root keys for receipts stay sealed under a master key that is not the " +
			"first of the ring; the next start of a node tries again")
	}
}

// readOrMake reads the receipt keys of an owner, and makes them if the owner has none.
func (r *Receipts) readOrMake(
	ctx context.Context, place node.Place, owner licensing.Owner,
) (*ReceiptSigner, error) {
	if err := r.engine.StartWork(); err != nil {
		return nil, err
	}
	defer r.engine.EndWork()
	keys, err := r.readKeys(ctx, owner)
	if errors.Is(err, licensing.ErrNoReceiptKeys) {
		keys, err = r.makeKeys(ctx, place, owner)
	}
	if err != nil {
		return nil, err
	}
	return r.open(keys)
}

// readKeys reads the receipt keys of an owner. The caller holds an admission place.
func (r *Receipts) readKeys(ctx context.Context, owner licensing.Owner) (*licensing.ReceiptKeys, error) {
	loaded, err := r.cfg.Records.Load(ctx, store.Want{Ref: licensing.ReceiptKeysRef(owner)})
	if err != nil {
		return nil, err
	}
	if loaded[0].Record.ReceiptKeys == nil {
		return nil, licensing.ErrNoReceiptKeys
	}
	return loaded[0].Record.ReceiptKeys, nil
}

// makeKeys makes the receipt keys of an owner, unless another node was first.
func (r *Receipts) makeKeys(
	ctx context.Context, place node.Place, owner licensing.Owner,
) (*licensing.ReceiptKeys, error) {
	if err := r.keymaker().useCurrent(ctx); err != nil {
		return nil, r.explainRing(err)
	}
	var secret [licensing.RootSecretSize]byte
	if _, err := io.ReadFull(r.cfg.Entropy, secret[:]); err != nil {
		return nil, fmt.Errorf("make receipt keys: %w", err)
	}
	root, err := r.seal(owner, keyring.NewRootSecret(secret))
	if err != nil {
		return nil, err
	}
	result, err := place.Do(ctx, licensing.ReceiptKeysRef(owner), licensing.MakeReceiptKeys{Owner: owner, Root: root})
	return result.ReceiptKeys, err
}

func (r *Receipts) seal(owner licensing.Owner, secret keyring.RootSecret) (licensing.SealedRoot, error) {
	var nonce [licensing.RootNonceSize]byte
	if _, err := io.ReadFull(r.cfg.Entropy, nonce[:]); err != nil {
		return licensing.SealedRoot{}, fmt.Errorf("seal a root secret: %w", err)
	}
	return r.cfg.Ring.SealRoot(owner, secret, nonce)
}

// open opens receipt keys that were just read, and remembers them.
func (r *Receipts) open(keys *licensing.ReceiptKeys) (*ReceiptSigner, error) {
	secret, err := r.cfg.Ring.OpenRoot(keys.Owner, keys.Root)
	if err != nil {
		return nil, r.explainRing(&ringError{err})
	}
	s := &ReceiptSigner{
		Keys: keys, Root: receipt.NewSigner(secret.RootKey()), signers: make(map[uint64]*receipt.Signer),
	}
	for _, k := range keys.Keys {
		s.signers[k.Number] = receipt.NewSigner(secret.ReceiptKey(k))
	}
	r.signers.Set(keys.Owner, remembered[*ReceiptSigner]{s, r.engine.Now().Add(signerLife)})
	return s, nil
}

// SignedDocuments are documents that are signed once and answered often, each by a number. There must be few numbers:
// SignedDocuments forget none. The zero SignedDocuments are empty.
type SignedDocuments struct {
	mu   sync.Mutex
	made map[int64]SignedDocument
}

// SignedDocument is a document, with its ETag. Callers must not change it.
type SignedDocument struct {
	Body   []byte
	Signed string // what is signed of a body that has more
	ETag   string
}

// Of returns the document with a number, and signs it if it is new. sign returns the document without its ETag. Callers
// who come at the same time may all sign, and get one document.
func (d *SignedDocuments) Of(number int64, sign func() (SignedDocument, error)) (SignedDocument, error) {
	if made, ok := d.recall(number); ok {
		return made, nil
	}
	made, err := sign()
	if err != nil {
		return SignedDocument{}, err
	}
	sum := sha256.Sum256(made.Body)
	made.ETag = `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	d.mu.Lock()
	defer d.mu.Unlock()
	if first, ok := d.made[number]; ok {
		return first, nil
	}
	if d.made == nil {
		d.made = make(map[int64]SignedDocument)
	}
	d.made[number] = made
	return made, nil
}

func (d *SignedDocuments) recall(number int64) (made SignedDocument, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, ok = d.made[number]
	return made, ok
}
