package storetest

import (
	"context"
	"sync"

	"licet/licensing"
	"licet/node/store"
)

// Faulty is a store that fails on demand. A nil hook lets the call pass. Set the hooks before the
// store is used.
type Faulty struct {
	store.Store
	// OnLoad is called before each Load; an error ends the call.
	OnLoad func(wants []store.Want) error
	// AfterLoad may change the result of a Load.
	AfterLoad func([]store.Snapshot)
	// Forgetful makes Recall and MaxDevicesPerCommit remember nothing.
	Forgetful bool
	// OnRecall is called before each Recall.
	OnRecall func(store.Want)
	// AfterRecall may change the result of a Recall.
	AfterRecall func(*store.Snapshot)
	// OnConfirm is called before each Confirm; an error ends the call.
	OnConfirm func(licensing.Ref) error
	// OnCommit is called for each Commit and says what happens to it.
	OnCommit func(store.Change) Fault
	// OnOverlap is called if a record is in two Commits at a time, which the node must prevent; see
	// store.Store.
	OnOverlap func(licensing.Ref)
	// OnReadLicenses is called before each ReadLicenses; an error ends the call.
	OnReadLicenses func(keys []licensing.LicenseKey) error
	// OnAPIKey is called before each APIKey; an error ends the call.
	OnAPIKey func(hash [32]byte) error
	// OnAPIKeyMarks is called before each APIKeyMarks; an error ends the call.
	OnAPIKeyMarks func() error
	// HangWatch makes WatchAPIKeys hang without calling wake.
	HangWatch bool

	calls sync.WaitGroup // calls of a hook or the store that bounded made; a caller may have given up waiting for them

	mu         sync.Mutex
	committing map[licensing.Ref]int // how many Commits a record is in; guarded by mu
}

// WaitForCalls waits for the calls whose callers gave up. Call it before the store is closed: such a call would ask the
// closed store without end.
func (f *Faulty) WaitForCalls() { f.calls.Wait() }

// Fault is the fault of a commit. Skip and Say are independent of each other. The zero Fault is no
// fault.
type Fault struct {
	Skip bool             // the commit is not made
	Say  *licensing.Error // the commit returns this error, whatever happened
}

// Load reads records, as store.Store does.
func (f *Faulty) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	if f.OnLoad != nil {
		if _, err := bounded(ctx, &f.calls, licensing.ErrUnavailable,
			func() (struct{}, error) { return struct{}{}, f.OnLoad(wants) }); err != nil {
			return nil, err
		}
	}
	snapshots, err := f.Store.Load(ctx, wants...)
	if f.AfterLoad != nil && err == nil {
		f.AfterLoad(snapshots)
	}
	return snapshots, err
}

// bounded waits for a call until ctx ends, as every store does; the call
// itself continues, and calls counts it.
func bounded[T any](ctx context.Context, calls *sync.WaitGroup, gaveUp error, call func() (T, error)) (T, error) {
	type end struct {
		value T
		err   error
	}
	ended := make(chan end, 1)
	calls.Go(func() {
		value, err := call()
		ended <- end{value, err}
	})
	select {
	case e := <-ended:
		return e.value, e.err
	case <-ctx.Done():
		var zero T
		return zero, gaveUp
	}
}

// Recall returns what the store remembers, as store.Store does.
func (f *Faulty) Recall(want store.Want) (store.Snapshot, []string, bool) {
	if f.Forgetful {
		return store.Snapshot{}, nil, false
	}
	if f.OnRecall != nil {
		f.OnRecall(want)
	}
	guess, unsure, ok := f.Store.Recall(want)
	if ok && f.AfterRecall != nil {
		f.AfterRecall(&guess)
	}
	return guess, unsure, ok
}

// MaxDevicesPerCommit returns the store's limit, as store.Store does.
func (f *Faulty) MaxDevicesPerCommit(ref licensing.Ref) int {
	if f.Forgetful {
		return store.MaxTouchedDevices
	}
	return f.Store.MaxDevicesPerCommit(ref)
}

// Confirm asks the store whether a guess is still true, as store.Store does.
func (f *Faulty) Confirm(ctx context.Context, ref licensing.Ref, token store.Token) (bool, error) {
	if f.OnConfirm != nil {
		if _, err := bounded(ctx, &f.calls, licensing.ErrUnavailable,
			func() (struct{}, error) { return struct{}{}, f.OnConfirm(ref) }); err != nil {
			return false, err
		}
	}
	return f.Store.Confirm(ctx, ref, token)
}

// Commit makes a change as store.Store does, unless OnCommit returns a Fault.
func (f *Faulty) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	f.count(change, 1)
	defer f.count(change, -1)
	if f.OnCommit == nil {
		return f.Store.Commit(ctx, change)
	}
	return bounded(ctx, &f.calls, licensing.ErrOutcomeUnknown, func() (outcome store.Outcome, err error) {
		fault := f.OnCommit(change)
		if !fault.Skip {
			outcome, err = f.Store.Commit(context.WithoutCancel(ctx), change)
		}
		if fault.Say != nil {
			return store.Outcome{}, fault.Say
		}
		return outcome, err
	})
}

// count counts the Commits that the records of a change are in.
func (f *Faulty) count(change store.Change, by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.committing == nil {
		f.committing = make(map[licensing.Ref]int)
	}
	for i := range change.Writes {
		ref := change.Writes[i].Ref
		f.committing[ref] += by
		switch {
		case f.committing[ref] == 0:
			delete(f.committing, ref)
		case by > 0 && f.committing[ref] > 1 && f.OnOverlap != nil:
			f.OnOverlap(ref)
		}
	}
}

// ReadLicenses reads licenses, as store.Store does.
func (f *Faulty) ReadLicenses(
	ctx context.Context, keys []licensing.LicenseKey, devices int,
) ([]*store.LicenseView, error) {
	if f.OnReadLicenses != nil {
		if err := f.OnReadLicenses(keys); err != nil {
			return nil, err
		}
	}
	return f.Store.ReadLicenses(ctx, keys, devices)
}

// APIKey finds a key, as store.Store does.
func (f *Faulty) APIKey(ctx context.Context, hash [32]byte) (*licensing.APIKey, error) {
	if f.OnAPIKey != nil {
		if err := f.OnAPIKey(hash); err != nil {
			return nil, err
		}
	}
	return f.Store.APIKey(ctx, hash)
}

// APIKeyMarks reads the marks of all keys, as store.Store does.
func (f *Faulty) APIKeyMarks(ctx context.Context) (store.KeyMarks, error) {
	if f.OnAPIKeyMarks != nil {
		if err := f.OnAPIKeyMarks(); err != nil {
			return store.KeyMarks{}, err
		}
	}
	return f.Store.APIKeyMarks(ctx)
}

// WatchAPIKeys watches the marks as store.Store does, or hangs if HangWatch is set.
func (f *Faulty) WatchAPIKeys(ctx context.Context, wake func()) {
	if f.HangWatch {
		<-ctx.Done()
		return
	}
	f.Store.WatchAPIKeys(ctx, wake)
}
